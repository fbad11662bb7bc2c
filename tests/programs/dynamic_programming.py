"""Programs that fill tables: alignment, paths, knapsacks, parsing, chains, decisions, with costs that are learnt."""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left, bisect_right
from functools import cache, reduce
from itertools import accumulate, permutations

import numpy as np

import wengert
from tests.programs.kit import array, choice, indices, matrix, pair, program, real, reals, text, weights, whole, wholes


@program(a=wholes(3, 0, 1), b=wholes(2, 0, 1))
def edit_distance(insert, delete, replace):
    def distance(a, b):
        row = [j * insert for j in range(len(b) + 1)]
        for i, x in enumerate(a, start=1):
            previous, row = row, [i * delete]
            for j, y in enumerate(b, start=1):
                change = previous[j - 1] + (0 if x == y else replace)
                row.append(wengert.min(previous[j] + delete, row[j - 1] + insert, change))
        return row[-1]

    return distance


@program(a=text("GATTACA", "ACGT"), b=text("GTTAC", "TACGA"))
def needleman_wunsch(match, mismatch, gap):
    def score(a, b):
        table = [[-gap * (i + j) for j in range(len(b) + 1)] for i in range(len(a) + 1)]
        for i in range(1, len(a) + 1):
            for j in range(1, len(b) + 1):
                pair = match if a[i - 1] == b[j - 1] else -mismatch
                table[i][j] = max(
                    table[i - 1][j - 1] + pair, table[i - 1][j] - gap, table[i][j - 1] - gap, key=lambda v: v.data
                )
        return table[-1][-1]

    return score


@program(a=wholes(6, 0, 3), b=wholes(6, 0, 3))
def smith_waterman(gap, similarity=weights(4, 4)):
    def best_local_alignment(a, b):
        h = [[wengert.Value(0.0) for _ in range(len(b) + 1)] for _ in range(len(a) + 1)]
        best = wengert.Value(0.0)
        for i in range(1, len(a) + 1):
            for j in range(1, len(b) + 1):
                stay = h[i - 1][j - 1] + similarity[a[i - 1]][b[j - 1]]
                h[i][j] = wengert.maximum(0.0, wengert.max(stay, h[i - 1][j] - gap, h[i][j - 1] - gap))
                best = wengert.maximum(best, h[i][j])
        return best

    return best_local_alignment


@program(series=reals(6, -2.0, 2.0), template=reals(5, -2.0, 2.0))
def dynamic_time_warping(scale, shift):
    def distance(series, template):
        n, m = len(series), len(template)
        d = {(i, j): math.inf for i in range(-1, n) for j in range(-1, m)}
        d[-1, -1] = 0.0
        for i in range(n):
            for j in range(m):
                cost = (scale * series[i] + shift - template[j]) ** 2
                d[i, j] = cost + wengert.min(d[i - 1, j], d[i, j - 1], d[i - 1, j - 1])
        return d[n - 1, m - 1]

    return distance


@program(series=reals(5, -2.0, 2.0), template=reals(5, -2.0, 2.0), gamma=real(0.1, 1.0))
def soft_dynamic_time_warping(scale):
    def soft_min(values, gamma):
        return -gamma * wengert.logsumexp([-v / gamma for v in values])

    def distance(series, template, gamma):
        n, m = len(series), len(template)
        table = np.full((n + 1, m + 1), 1e6, dtype=object)
        table[0, 0] = 0.0
        for i in range(1, n + 1):
            for j in range(1, m + 1):
                cost = (scale * series[i - 1] - template[j - 1]) ** 2
                table[i, j] = cost + soft_min([table[i - 1, j], table[i, j - 1], table[i - 1, j - 1]], gamma)
        return table[n, m]

    return distance


@program(sizes=pair(whole(1, 2), whole(2, 3), whole(1, 2)), capacity=whole(3, 5))
def knapsack(worth=weights(3, low=0.1, high=3.0)):
    def best(sizes, capacity):
        table = [worth[0] * 0] * (capacity + 1)
        for size, value in zip(sizes, worth):
            for room in range(capacity, size - 1, -1):
                table[room] = wengert.max(table[room], table[room - size] + value)
        return table[capacity]

    return best


@program(length=whole(1, 8))
def rod_cutting(exponent, base, cost):
    def revenue(length):
        @cache
        def price(n):
            return base * n**exponent

        best = [0.0 * cost]
        for n in range(1, length + 1):
            cuts = [price(k) + best[n - k] - 0.1 * cost for k in range(1, n + 1)]
            best.append(wengert.max(*cuts) if len(cuts) > 1 else cuts[0])
        return best[length]

    return revenue


@program(amount=whole(3, 7), coins=choice((1, 5, 8), (2, 3, 1)))
def change_making(weight, handling):
    def cheapest(amount, coins):
        best = {0: 0.0 * weight}
        for total in range(1, amount + 1):
            for coin in coins:
                if coin > total:
                    continue
                cost = best[total - coin] + handling + weight / coin
                if total not in best or cost < best[total]:
                    best[total] = cost
        return best[amount]

    return cheapest


@program(dimensions=wholes(5, 1, 9))
def matrix_chain(multiply, store):
    def cost(dimensions):
        n = len(dimensions) - 1
        m = [[0.0] * n for _ in range(n)]
        for span in range(1, n):
            for i in range(n - span):
                j = i + span
                options = []
                for k in range(i, j):
                    work = dimensions[i] * dimensions[k + 1] * dimensions[j + 1]
                    options.append(m[i][k] + m[k + 1][j] + multiply * work + store * dimensions[i] * dimensions[j + 1])
                m[i][j] = min(options, key=lambda v: v.data)
        return m[0][n - 1]

    return cost


@program(observations=wholes(4, 0, 2))
def viterbi_decoding(start=weights(2), transition=weights(2, 2), emission=weights(2, 3)):
    def best_path_score(observations):
        score = [start[s] + emission[s][observations[0]] for s in range(2)]
        back = []
        for symbol in observations[1:]:
            following, pointers = [], []
            for s in range(2):
                candidates = [score[r] + transition[r][s] for r in range(2)]
                r = max(range(2), key=lambda i: candidates[i].data)
                following.append(candidates[r] + emission[s][symbol])
                pointers.append(r)
            score = following
            back.append(pointers)
        state = 0 if score[0] > score[1] else 1
        final, path = score[state], [state]
        for pointers in reversed(back):
            state = pointers[state]
            path.append(state)
        return final + 0.01 * sum(path)

    return best_path_score


@program(words=wholes(4, 0, 2))
def probabilistic_parsing(split, lexicon=weights(2, 3)):
    rules = [(0, 0, 1), (1, 1, 0), (0, 1, 1)]

    def inside(words):
        n = len(words)
        chart = {}
        for i, w in enumerate(words):
            for a in range(2):
                chart[i, i + 1, a] = lexicon[a][w].exp()
        for width in range(2, n + 1):
            for i in range(n - width + 1):
                j = i + width
                for a, b, c in rules:
                    total = sum(chart[i, k, b] * chart[k, j, c] for k in range(i + 1, j) if (i, k, b) in chart)
                    chart[i, j, a] = chart.get((i, j, a), 0.0) + split.sigmoid() * total
        return wengert.log(chart[0, n, 0] + 1e-9)

    return inside


@program(lengths=matrix(3, 3, 0.5, 5.0))
def floyd_warshall(toll, speed):
    def mean_distance(lengths):
        n = len(lengths)
        d = [[0.0 if i == j else lengths[i][j] / speed + toll for j in range(n)] for i in range(n)]
        for k in range(n):
            for i in range(n):
                for j in range(n):
                    through = d[i][k] + d[k][j]
                    if through < d[i][j]:
                        d[i][j] = through
        return sum(sum(row) for row in d) / n**2

    return mean_distance


EDGES = [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3), (3, 4), (2, 4)]


@program(costs=reals(7, -0.5, 3.0))
def bellman_ford(penalty):
    def shortest(costs):
        distance = [math.inf] * 5
        distance[0] = 0.0
        for _ in range(4):
            changed = False
            for (a, b), cost in zip(EDGES, costs):
                reached = distance[a] + cost + penalty
                if reached < distance[b]:
                    distance[b] = reached
                    changed = True
            if not changed:
                break
        return distance[-1]

    return shortest


@program(costs=reals(7, 0.2, 3.0), source=whole(1, 3))
def dijkstra(scale, fixed):
    neighbours = {}
    for number, (a, b) in enumerate(EDGES):
        neighbours.setdefault(a, []).append((b, number))

    def shortest(costs, source):
        queue, done = [(0.0, source, wengert.Value(0.0))], set()
        while queue:
            _, node, exact = heapq.heappop(queue)
            if node == 4:
                return exact
            if node in done:
                continue
            done.add(node)
            for to, number in neighbours.get(node, []):
                longer = exact + scale * costs[number] + fixed
                heapq.heappush(queue, (longer.data, to, longer))
        raise RuntimeError("not connected")

    return shortest


@program(frequency=reals(5, 0.1, 2.0))
def optimal_search_tree(depth_cost, leaf_cost):
    def expected_cost(frequency):
        @cache
        def cost(i, j):
            if i == j:
                return leaf_cost
            weight = sum(frequency[i:j]) * depth_cost
            return weight + wengert.min(*[cost(i, k) + cost(k + 1, j) for k in range(i, j)], 1e9)

        return cost(0, len(frequency))

    return expected_cost


@program(heights=reals(4, 0.0, 9.0))
def heaviest_increasing_run(weight, bias):
    def heaviest(heights):
        best = []
        for i, h in enumerate(heights):
            value = weight * h + bias
            before = [best[j] for j in range(i) if heights[j] < h]
            best.append(value + (wengert.max(before) if before else 0.0))
        return wengert.max(best)

    return heaviest


@program(cards=reals(4, 0.0, 5.0))
def patience_sorting(pile_cost, spread):
    def score(cards):
        tops = []
        for card in cards:
            place = bisect_left(tops, card)
            if place == len(tops):
                tops.append(card)
            else:
                tops[place] = card
        return pile_cost * len(tops) + spread * sum(b - a for a, b in zip(tops, tops[1:]))

    return score


@program(gains=reals(10, -2.0, 2.0))
def maximum_subarray(scale, drag):
    def kadane(gains):
        best = here = scale * gains[0] - drag
        for g in gains[1:]:
            value = scale * g - 0.2 * drag
            here = wengert.maximum(here + value, value)
            best = wengert.maximum(best, here)
        return best

    return kadane


@program(image=array(3, 2, lo=0.0, hi=1.0))
def seam_carving(horizontal, vertical):
    def energy_of_the_best_seam(image):
        gx = np.abs(np.diff(image, axis=1, append=image[:, -1:]))
        gy = np.abs(np.diff(image, axis=0, append=image[-1:, :]))
        energy = gx * horizontal + gy * vertical
        best = list(energy[0])
        for row in energy[1:]:
            best = [e + min(best[max(j - 1, 0) : j + 2], key=lambda v: v.data) for j, e in enumerate(row)]
        return min(best, key=lambda v: v.data)

    return energy_of_the_best_seam


@program(terrain=matrix(4, 4, 0.0, 3.0))
def falling_path(step, smoothness):
    def cost(terrain):
        sums = [wengert.Value(x) for x in terrain[0]]
        for above, row in zip(terrain, terrain[1:]):
            following = []
            for j, x in enumerate(row):
                near = sums[max(0, j - 1) : min(len(row), j + 2)]
                soft = -0.3 * wengert.logsumexp([-s / 0.3 for s in near])
                following.append(soft + step * x + 0.5 * (smoothness * x - above[j]) ** 2)
            sums = following
        return wengert.min(sums)

    return cost


@program(floors=whole(1, 8), eggs=whole(1, 3))
def egg_drop(price, hurry):
    def cost(floors, eggs):
        memo = {}

        def drops(n, k):
            if n == 0 or k == 1:
                return n
            if (n, k) not in memo:
                memo[n, k] = 1 + min(max(drops(i - 1, k - 1), drops(n - i, k)) for i in range(1, n + 1))
            return memo[n, k]

        return price * eggs + hurry * drops(floors, eggs)

    return cost


@program(starts=reals(3, 0.0, 8.0), lengths=reals(3, 0.5, 1.5))
def weighted_interval_scheduling(value=weights(3, low=0.5, high=3.0)):
    def best(starts, lengths):
        jobs = sorted(
            ((s + length, s, v) for s, length, v in zip(starts, lengths, value)), key=lambda job: (job[0], job[1])
        )
        ends = [end for end, _, _ in jobs]
        table = [wengert.Value(0.0)]
        for i, (_end, start, v) in enumerate(jobs):
            free = bisect_right(ends, start, hi=i)
            table.append(wengert.max(table[-1], table[free] + v))
        return table[-1]

    return best


@program(places=matrix(4, 2, 0.0, 4.0))
def travelling_salesman(speed, wait):
    def tour(places):
        n = len(places)
        d = [[math.dist(p, q) for q in places] for p in places]
        best = {(1, 0): 0.0 * wait}
        for _ in range(n - 1):
            following = {}
            for (visited, last), cost in best.items():
                for to in range(1, n):
                    if visited & (1 << to):
                        continue
                    key = (visited | (1 << to), to)
                    longer = cost + d[last][to] / speed + wait * 0.1
                    if key not in following or longer < following[key]:
                        following[key] = longer
            best = following
        return min((cost + d[last][0] / speed for (_, last), cost in best.items()), key=lambda v: v.data)

    return tour


@program(bases=text("GGGAAAUCC", "GCACGACG", "AUGCAU"))
def rna_folding(gc, au, loop):
    def soft_partition(bases):
        strength = {"GC": gc, "CG": gc, "AU": au, "UA": au}
        n = len(bases)
        z = [[1.0] * (n + 1) for _ in range(n + 1)]
        for span in range(2, n + 1):
            for i in range(n - span + 1):
                j = i + span
                total = z[i + 1][j]
                for k in range(i + 2, j):
                    pair = bases[i] + bases[k]
                    if pair in strength and k - i > 2:
                        total = total + (strength[pair] - 0.1 * loop).exp() * z[i + 1][k] * z[k + 1][j]
                z[i][j] = total
        return wengert.log(z[0][n]) + 0 * loop

    return soft_partition


@program(labels=wholes(3, 1, 3))
def connectionist_temporal_classification(logits=weights(6, 4)):
    def loss(labels):
        extended = [0]
        for label in labels:
            extended += [label, 0]
        log_p = [wengert.log_softmax(row) for row in logits]
        alpha = {0: log_p[0][0], 1: log_p[0][extended[1]]}
        for frame in log_p[1:]:
            following = {}
            for s, symbol in enumerate(extended):
                ways = [alpha[r] for r in (s, s - 1) if r in alpha]
                if s > 1 and symbol != 0 and symbol != extended[s - 2] and s - 2 in alpha:
                    ways.append(alpha[s - 2])
                if ways:
                    following[s] = frame[symbol] + (wengert.logsumexp(ways) if len(ways) > 1 else ways[0])
            alpha = following
        last = len(extended) - 1
        return -wengert.logsumexp([alpha[s] for s in (last, last - 1) if s in alpha])

    return loss


@program(rewards=reals(5, -1.0, 2.0), sweeps=whole(2, 8))
def value_iteration(discount, slip):
    def value_of_the_start(rewards, sweeps):
        gamma, p = 0.9 * discount.sigmoid(), 0.5 + 0.5 * slip.sigmoid()
        v = [0.0] * 5
        for _ in range(sweeps):
            left = [v[max(s - 1, 0)] for s in range(5)]
            right = [v[min(s + 1, 4)] for s in range(5)]
            v = [
                r + gamma * wengert.max(p * a + (1 - p) * b, p * b + (1 - p) * a)
                for r, a, b in zip(rewards, left, right)
            ]
        return v[0]

    return value_of_the_start


@program(policy=wholes(4, 0, 1), rewards=reals(4, -1.0, 1.0))
def policy_evaluation(discount, reset):
    def returns(policy, rewards):
        gamma, q = discount.sigmoid(), 0.2 * reset.sigmoid()
        v = [0.0] * 4
        for _ in range(6):
            v = [rewards[s] + gamma * ((1 - q) * v[(s + 1 if policy[s] else s - 1) % 4] + q * v[0]) for s in range(4)]
        return sum(v)

    return returns


@program(offers=reals(6, 0.0, 10.0), current=whole(0, 5))
def optimal_stopping(patience, cost):
    def worth_of_waiting(offers, current):
        future = wengert.Value(offers[-1])
        for offer in reversed(offers[current:]):
            future = wengert.maximum(offer, (patience + 2).sigmoid() * future - 0.1 * cost)
        return future

    return worth_of_waiting


@program(demand=wholes(2, 0, 1), start=whole(0, 1))
def inventory_control(holding, ordering, shortage):
    def cost(demand, start):
        future = dict.fromkeys(range(-3, 6), 0.0)
        for d in reversed(demand):
            now = {}
            for stock in range(4):
                best = None
                for order in range(4 - stock):
                    left = stock + order - d
                    price = ordering * (order > 0) + (holding * left if left >= 0 else -shortage * left)
                    total = price + future[max(left, 0)]
                    if best is None or total.data < best.data:
                        best = total
                now[stock] = best
            future = now
        return future[start]

    return cost


@program(n=whole(1, 9))
def counting_trees(weight, decay):
    def generating(n):
        catalan = [1.0]
        for k in range(n):
            catalan.append(weight * sum(catalan[i] * catalan[k - i] for i in range(k + 1)) / (k + 1))
        return sum(c * (-decay * k).exp() for k, c in enumerate(catalan))

    return generating


@program(
    words=text("the cat sat on the mat", "a bb ccc dddd eeeee", "to be or not to be that is it"), width=whole(7, 9)
)
def justified_text(raggedness, hyphen):
    def badness(words, width):
        lengths = [len(w) for w in words.split()]
        ends = [0, *accumulate(lengths)]
        best = [0.0 * hyphen]
        for j in range(1, len(ends)):
            options = []
            for i in range(j):
                room = width - (ends[j] - ends[i]) - (j - i - 1)
                if room >= 0:
                    options.append(best[i] + raggedness * (room / width) ** 3 + 0.1 * hyphen)
            best.append(min(options, key=lambda v: v.data))
        return best[-1]

    return badness


@program(gains=reals(7, -1.0, 3.0))
def independent_set_on_a_tree(pull):
    children = {0: [1, 2], 1: [3, 4], 2: [5], 3: [], 4: [], 5: [6], 6: []}

    def best(gains):
        def solve(node):
            take, skip = gains[node] * pull, 0.0 * pull
            for child in children[node]:
                with_child, without = solve(child)
                take = take + without
                skip = skip + wengert.max(with_child, without)
            return take, skip

        return wengert.max(*solve(0))

    return best


@program(series=reals(8, -3.0, 3.0), limit=whole(1, 3))
def change_points(penalty, pull):
    def segmentation(series, limit):
        def cost(i, j):
            mean = sum(series[i:j]) / (j - i)
            return pull * sum((x - mean) ** 2 for x in series[i:j])

        table = [cost(0, j) if j else 0.0 * pull for j in range(len(series) + 1)]
        for _ in range(limit):
            table = [
                reduce(wengert.minimum, [table[i] + cost(i, j) + penalty for i in range(1, j)], table[j])
                for j in range(len(series) + 1)
            ]
        return table[-1]

    return segmentation


@program(prices=reals(7, 1.0, 9.0), trades=whole(1, 3))
def buy_and_sell(fee, scale):
    def profit(prices, trades):
        cash = [0.0 * fee] * (trades + 1)
        held = [-1e9 + 0 * fee] * (trades + 1)
        for p in prices:
            for k in range(1, trades + 1):
                held[k] = wengert.max(held[k], cash[k - 1] - scale * p - 0.1 * fee)
                cash[k] = wengert.max(cash[k], held[k] + scale * p)
        return wengert.max(cash)

    return profit


@program(balloons=reals(3, 0.5, 3.0))
def burst_balloons(power):
    def coins(balloons):
        b = [1.0, *balloons, 1.0]
        n = len(b)
        best = [[0.0] * n for _ in range(n)]
        for gap in range(2, n):
            for left in range(n - gap):
                right = left + gap
                top = 0.0
                for k in range(left + 1, right):
                    got = (b[left] * b[k] * b[right]) ** power + best[left][k] + best[k][right]
                    if got > top:
                        top = got
                best[left][right] = top
        return best[0][-1]

    return coins


@program(sentence=text("thecatsat", "catsandthe", "sandcat"))
def word_segmentation(unknown, prior):
    costs = {"the": 1.0, "cat": 2.0, "cats": 3.0, "sat": 2.5, "and": 1.2, "sand": 3.5, "at": 1.5}

    def cheapest(sentence):
        best = [None] * (len(sentence) + 1)
        best[0] = 0.0 * prior
        for end in range(1, len(sentence) + 1):
            for start in range(max(0, end - 5), end):
                word = sentence[start:end]
                price = prior * costs[word] if word in costs else unknown * len(word) ** 2
                total = best[start] + price
                if best[end] is None or total < best[end]:
                    best[end] = total
        return best[-1]

    return cheapest


@program(houses=reals(8, 0.1, 4.0))
def house_robber(alarm, scale):
    def loot(houses):
        rob, skip = 0.0 * alarm, 0.0 * alarm
        for h in houses:
            rob, skip = skip + scale * h - alarm, wengert.maximum(rob, skip)
        return wengert.maximum(rob, skip)

    return loot


@program(levels=reals(4, 0.0, 4.0))
def trapped_water(porosity, leak):
    def volume(levels):
        left = list(accumulate(levels, max))
        right = list(accumulate(reversed(levels), max))[::-1]
        total = 0.0
        for low, a, b in zip(levels, left, right):
            depth = min(a, b) - low
            total += (1 - 0.3 * porosity.sigmoid()) * depth - leak * depth**2 / 10
        return total + 0 * leak

    return volume


@program(jobs=reals(3, 0.5, 3.0), due=reals(3, 1.0, 6.0))
def job_sequence(lateness, setup):
    def best_order(jobs, due):
        def tardiness(order):
            clock, total = 0.0 * setup, 0.0
            for i in order:
                clock = clock + jobs[i] + 0.2 * setup
                total = total + (clock - due[i]).relu() * lateness
            return total

        return min((tardiness(order) for order in permutations(range(len(jobs)))), key=lambda v: v.data)

    return best_order


@program(context=wholes(6, 0, 3))
def trigram_model(unigram=weights(4), bigram=weights(4, 4), mix=weights(2)):
    def log_likelihood(context):
        share = wengert.softmax(mix)
        base = wengert.softmax(unigram)
        total = 0.0
        for a, b in zip(context, context[1:]):
            conditional = wengert.softmax(bigram[a])
            total += wengert.log(share[0] * base[b] + share[1] * conditional[b])
        return total

    return log_likelihood


@program(path=indices(6, lo=0, hi=4), jumps=whole(1, 3))
def cheapest_jumps(height, length):
    def cost(path, jumps):
        n = len(path)
        best = [0.0 * height] + [None] * (n - 1)
        for i in range(1, n):
            options = [
                best[j] + height * abs(int(path[i]) - int(path[j])) + length * (i - j) ** 2 / 10
                for j in range(max(0, i - jumps), i)
            ]
            best[i] = wengert.min(options)
        return best[-1]

    return cost
