"""Programs of people who make and study games: ratings, search, rules, cards, movement, strategy."""

from __future__ import annotations

import heapq
import math
import random
from collections import Counter, deque
from itertools import combinations, product

import numpy as np

import wengert
from tests.programs.kit import (
    array,
    choice,
    flag,
    indices,
    matrix,
    pair,
    program,
    real,
    reals,
    record,
    text,
    weights,
    whole,
    wholes,
)


@program(results=wholes(4, 0, 1), opponents=wholes(4, 0, 3))
def elo_ratings(k_factor, ratings=weights(4)):
    def surprise(results, opponents):
        mine, loss = 0.0, 0.0
        for won, rival in zip(results, opponents):
            expected = 1 / (1 + ((ratings[rival] - mine) * math.log(10) / 4).exp())
            loss -= (expected if won else 1 - expected).log()
            mine = mine + k_factor * (won - expected)
        return loss

    return surprise


@program(winners=wholes(4, 0, 4), losers=wholes(4, 0, 4))
def bradley_terry(strength=weights(5)):
    def log_likelihood(winners, losers):
        total = 0.0
        for w, l_ in zip(winners, losers):
            if w == l_:  # a walkover
                continue
            total += (strength[w] - strength[l_]).logsigmoid()
        return total - 0.1 * sum(s**2 for s in strength)

    return log_likelihood


@program(skill=pair(real(-1.0, 1.0), real(-1.0, 1.0)), draw=flag())
def true_skill_match(beta, margin):
    def evidence(skill, draw):
        mine, theirs = skill
        width = (2 * beta**2 + 1).sqrt()
        t, e = (mine - theirs) / width, 0.3 * margin / width
        if draw:
            return ((e - t).normal_cdf() - (-e - t).normal_cdf()).log()
        return (t - e).normal_cdf().log()

    return evidence


LINES = [(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)]


@program(board=wholes(9, -1, 1), engine="each position takes a path of its own")
def tic_tac_toe_evaluation(two, three, center):
    def evaluate(board):
        score = center * board[4]
        for line in LINES:
            marks = [board[i] for i in line]
            mine, theirs = marks.count(1), marks.count(-1)
            if mine and theirs:
                continue
            if mine == 3:
                return score + 10 * three
            if theirs == 3:
                return score - 10 * three
            score += two * (mine - theirs)
        return score

    return evaluate


@program(features=matrix(8, 3, -2.0, 2.0), depth=whole(1, 2))
def alpha_beta_search(w=weights(3)):
    def best_value(features, depth):
        def search(node, depth, alpha, beta, maximizing):
            if depth == 0:
                return sum(a * b for a, b in zip(w, features[node]))
            best = None
            for child in (2 * node % 8, (2 * node + 1) % 8):
                value = search(child, depth - 1, alpha, beta, not maximizing)
                if best is None or (value > best if maximizing else value < best):
                    best = value
                if maximizing:
                    alpha = max(alpha, best.data)
                else:
                    beta = min(beta, best.data)
                if alpha >= beta:
                    break
            return best

        return search(0, depth, -math.inf, math.inf, True)

    return best_value


@program(prizes=reals(4, -5.0, 5.0))
def expectimax(risk, luck):
    def value(prizes):
        def node(low, high, chance):
            if high - low == 1:
                return risk * prizes[low]
            middle = (low + high) // 2
            left, right = node(low, middle, not chance), node(middle, high, not chance)
            if chance:
                p = luck.sigmoid()
                return p * left + (1 - p) * right
            return max(left, right, key=lambda v: v.data)

        return node(0, len(prizes), False)

    return value


@program(heaps=wholes(4, 0, 7), engine="it computes with the bits of its integers")
def nim_heuristic(reward, penalty):
    def score(heaps):
        nim_sum = 0
        for heap in heaps:
            nim_sum ^= heap
        if nim_sum == 0:
            return -penalty * (1 + sum(heaps))
        moves = [(i, heap ^ nim_sum) for i, heap in enumerate(heaps) if heap ^ nim_sum < heap]
        return reward * len(moves) - penalty * sum(to for _, to in moves)

    return score


@program(board=indices(6, 7, lo=-1, hi=1), engine="each position takes a path of its own")
def connect_four_windows(two, three, four):
    def evaluate(board):
        weight = {2: two, 3: 5 * three, 4: 100 * four}
        score = 0.0 * two
        rows, columns = board.shape
        for r, c, (dr, dc) in product(range(rows), range(columns), [(0, 1), (1, 0), (1, 1), (1, -1)]):
            if not (0 <= r + 3 * dr < rows and 0 <= c + 3 * dc < columns):
                continue
            window = [int(board[r + i * dr, c + i * dc]) for i in range(4)]
            if -1 not in window and window.count(1) > 1:
                score += weight[window.count(1)]
        return score

    return evaluate


@program(position=text("r3k2r/8/8/8/8/8/8/R3K2R", "8/5k2/3p4/1p1Pp2p/pP2Pp1P/P4P1K/8/8", "7k/6pp/8/8/8/8/QP6/K7"))
def chess_material(pawn, knight, rook, mobility):
    def evaluate(position):
        worth = {"p": pawn, "n": 3 * knight, "b": 3 * knight, "r": 5 * rook, "q": 9 * rook, "k": 0.0 * pawn}
        score = 0.0 * mobility
        for rank, row in enumerate(position.split("/")):
            file = 0
            for letter in row:
                if letter.isdigit():
                    file += int(letter)
                    continue
                central = 3.5 - max(abs(file - 3.5), abs(rank - 3.5))
                value = worth[letter.lower()] + 0.1 * mobility * central
                score += value if letter.isupper() else -value
                file += 1
        return score

    return evaluate


@program(cards=wholes(2, 1, 13), stand=whole(15, 17))
def blackjack_hand(win, loss):
    def payoff(cards, stand):
        hand, aces = 0, 0
        for card in cards:
            hand += 11 if card == 1 else min(card, 10)
            aces += card == 1
            while hand > 21 and aces:
                hand -= 10
                aces -= 1
            if hand >= stand:
                break
        if hand > 21:
            return -loss
        return win * (hand - 17) / 4 + (0.5 * win if hand == 21 else 0.0)

    return payoff


@program(ranks=wholes(5, 2, 6), suits=wholes(5, 0, 1), engine="each hand takes a path of its own")
def poker_hand(pairs, runs, flushes):
    def strength(ranks, suits):
        counts = sorted(Counter(ranks).values(), reverse=True)
        value = max(ranks) / 14 * pairs
        if len(set(suits)) == 1:
            value += 5 * flushes
        if sorted(ranks) == list(range(min(ranks), min(ranks) + 5)):
            value += 4 * runs
        match counts:
            case [4, *_] | [5]:
                value += 7 * pairs
            case [3, 2]:
                value += 6 * pairs
            case [3, *_]:
                value += 3 * pairs
            case [2, 2, 1]:
                value += 2 * pairs
            case [2, *_]:
                value += pairs
        return value

    return strength


@program(dice=whole(1, 3), target=whole(3, 10))
def sum_of_loaded_dice(logits=weights(6)):
    def probability(dice, target):
        faces = wengert.softmax(logits)
        chances = {0: wengert.Value(1.0)}
        for _ in range(dice):
            following = {}
            for total, chance in chances.items():
                for face, p in enumerate(faces, start=1):
                    following[total + face] = following.get(total + face, 0.0) + chance * p
            chances = following
        return sum((p for total, p in chances.items() if total >= target), wengert.Value(0.0))

    return probability


@program(shots=wholes(4, 0, 24), length=whole(2, 3), engine="each position takes a path of its own")
def battleship_heatmap(sharpness):
    def expected_hit(shots, length):
        heat = [[0] * 5 for _ in range(5)]
        for r, c in product(range(5), repeat=2):
            for dr, dc in ((0, 1), (1, 0)):
                cells = [(r + i * dr, c + i * dc) for i in range(length)]
                if all(x < 5 and y < 5 and x * 5 + y not in shots for x, y in cells):
                    for x, y in cells:
                        heat[x][y] += 1
        flat = [h for row in heat for h in row]
        p = wengert.softmax([sharpness * h for h in flat])
        return sum(a * h for a, h in zip(p, flat)) / max(flat)

    return expected_hit


@program(board=wholes(25, -1, 1), stone=whole(0, 24), engine="each position takes a path of its own")
def go_liberties(safety, threat):
    def score(board, stone):
        color = board[stone]
        if color == 0:
            return 0.0 * safety
        group, frontier, liberties = {stone}, [stone], set()
        while frontier:
            point = frontier.pop()
            row, column = divmod(point, 5)
            for r, c in ((row + 1, column), (row - 1, column), (row, column + 1), (row, column - 1)):
                if not (0 <= r < 5 and 0 <= c < 5):
                    continue
                near = 5 * r + c
                if board[near] == 0:
                    liberties.add(near)
                elif board[near] == color and near not in group:
                    group.add(near)
                    frontier.append(near)
        return color * (safety * len(liberties) - threat * len(group) / (1 + len(liberties)))

    return score


@program(grid=indices(5, 5, lo=0, hi=1), turns=whole(1, 4), engine="each position takes a path of its own")
def game_of_life(alive, growth):
    def fitness(grid, turns):
        before = int(grid.sum())
        for _ in range(turns):
            neighbours = sum(
                np.roll(np.roll(grid, i, 0), j, 1) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)
            )
            grid = ((neighbours == 3) | ((grid == 1) & (neighbours == 2))).astype(int)
        return alive * int(grid.sum()) / 25 + growth * (int(grid.sum()) - before)

    return fitness


@program(walls=wholes(16, 0, 1), start=whole(0, 15), goal=whole(0, 15), engine="each position takes a path of its own")
def maze_by_breadth_first_search(step, lost):
    def cost(walls, start, goal):
        seen, queue = {start}, deque([(start, 0)])
        while queue:
            cell, distance = queue.popleft()
            if cell == goal:
                return step * distance
            row, column = divmod(cell, 4)
            for r, c in ((row - 1, column), (row, column - 1), (row, column + 1), (row + 1, column)):
                to = 4 * r + c
                if 0 <= r < 4 and 0 <= c < 4 and to not in seen and not walls[to]:
                    seen.add(to)
                    queue.append((to, distance + 1))
        return lost * len(seen)

    return cost


@program(heights=matrix(4, 4, 0.0, 3.0), engine="each map takes a path of its own")
def cheapest_path_with_a_star(climb, walk):
    def cost(heights):
        goal = (3, 3)
        frontier = [(0.0, 0, (0, 0))]
        best = {(0, 0): 0.0 * climb}
        pushed = 0
        while frontier:
            _, _, (r, c) = heapq.heappop(frontier)
            if (r, c) == goal:
                break
            for to in ((r + 1, c), (r - 1, c), (r, c + 1), (r, c - 1)):
                if not (0 <= to[0] < 4 and 0 <= to[1] < 4):
                    continue
                rise = heights[to[0]][to[1]] - heights[r][c]
                price = best[r, c] + walk + climb * max(rise, 0.0) ** 2
                if to not in best or price < best[to]:
                    best[to] = price
                    pushed += 1
                    left = abs(goal[0] - to[0]) + abs(goal[1] - to[1])
                    heapq.heappush(frontier, (price.data + walk.data * left, pushed, to))
        return best[goal]

    return cost


@program(visits=wholes(4, 0, 20), totals=reals(4, -3.0, 6.0))
def upper_confidence_bound(exploration, prior):
    def chosen(visits, totals):
        parent = sum(visits) + 1
        best = None
        for n, total in zip(visits, totals):
            mean = (total + prior) / (n + 1)
            bound = mean + exploration * math.sqrt(math.log(parent) / (n + 1))
            if best is None or bound > best:
                best = bound
        return best

    return chosen


@program(
    states=wholes(8, 0, 3),
    actions=wholes(8, 0, 1),
    rewards=reals(8, -1.0, 1.0),
    engine="its table is written at places that the arguments name",
)
def q_learning_episode(rate, discount):
    def final_table(states, actions, rewards):
        q = {(s, a): 0.0 for s in range(4) for a in range(2)}
        alpha, gamma = rate.sigmoid(), discount.sigmoid()
        for s, a, r, following in zip(states, actions, rewards, states[1:]):
            best = max((q[following, b] for b in range(2)), key=lambda v: getattr(v, "data", v))
            q[s, a] = q[s, a] + alpha * (r + gamma * best - q[s, a])
        return sum(q.values()) / len(q)

    return final_table


@program(pulls=wholes(3, 0, 2), rewards=reals(3, 0.0, 1.0))
def gradient_bandit(step, preference=weights(3)):
    def log_probability(pulls, rewards):
        h, baseline, total = list(preference), 0.0, 0.0
        for t, (arm, reward) in enumerate(zip(pulls, rewards), 1):
            pi = wengert.softmax(h)
            total += pi[arm].log()
            h = [x + 0.3 * step * (reward - baseline) * ((i == arm) - p) for i, (x, p) in enumerate(zip(h, pi))]
            baseline += (reward - baseline) / t
        return total

    return log_probability


@program(payoffs=matrix(3, 3, -2.0, 2.0), rounds=whole(2, 6))
def regret_matching(stakes, first):
    def exploitability(payoffs, rounds):
        regrets = [first, 0.5 * first, 0.1 * first]
        average = [0.0] * 3
        for _ in range(rounds):
            positive = [r.relu() for r in regrets]
            total = sum(positive)
            mine = [p / total for p in positive] if total > 1e-9 else [wengert.Value(1 / 3)] * 3
            values = [stakes * sum(payoffs[i][j] * mine[j] for j in range(3)) for i in range(3)]
            expected = sum(m * v for m, v in zip(mine, values))
            regrets = [r + v - expected for r, v in zip(regrets, values)]
            average = [a + m / rounds for a, m in zip(average, mine)]
        return wengert.max(*[sum(payoffs[i][j] * average[j] for j in range(3)) for i in range(3)])

    return exploitability


@program(shares=reals(3, 0.1, 1.0), generations=whole(1, 6))
def replicator_dynamics(win, loss):
    def surviving(shares, generations):
        total = sum(shares)
        x = [s / total for s in shares]
        payoff = [[0.0, -loss, win], [win, 0.0, -loss], [-loss, win, 0.0]]
        for _ in range(generations):
            fitness = [sum(payoff[i][j] * x[j] for j in range(3)) for i in range(3)]
            mean = sum(a * f for a, f in zip(x, fitness))
            x = [a + 0.1 * a * (f - mean) for a, f in zip(x, fitness)]
        return -sum(a * a.log() for a in x)

    return surviving


def tit_for_tat(mine, theirs):
    return theirs[-1] if theirs else "C"


def grudger(mine, theirs):
    return "D" if "D" in theirs else "C"


def alternator(mine, theirs):
    return "CD"[len(mine) % 2]


@program(rival=choice(grudger, alternator), rounds=whole(3, 5), slips=wholes(2, 0, 4))
def iterated_prisoners_dilemma(temptation, reward, sucker):
    def score(rival, rounds, slips):
        payoff = {"CC": reward, "CD": -sucker, "DC": reward + temptation, "DD": 0.0 * reward}
        mine, theirs, total = [], [], 0.0
        for t in range(rounds):
            move = tit_for_tat(mine, theirs) if slips[t % 2] else "D"
            answer = rival(theirs, mine)
            mine.append(move)
            theirs.append(answer)
            total += 0.95**t * payoff[move + answer]
        return total

    return score


EFFECTIVE = {("fire", "grass"): 2.0, ("grass", "water"): 2.0, ("water", "fire"): 2.0, ("fire", "water"): 0.5}


@program(
    move=record(power=whole(20, 90), element=text("fire", "water", "grass")),
    target=record(defense=real(30.0, 90.0), element=text("fire", "water", "grass")),
    critical=flag(),
    modes="call values",
)
def creature_damage(attack, luck):
    def damage(move, target, critical):
        base = (22 * move["power"] * 60 * attack / target["defense"]) / 50 + 2
        factor = EFFECTIVE.get((move["element"], target["element"]), 1.0)
        if critical:
            base *= 1.5
        return base * factor * (0.85 + 0.15 * luck.sigmoid())

    return damage


@program(experience=real(0.0, 900.0))
def level_up(base, growth):
    def progress(experience):
        level, needed = 1, 40 + 20 * base
        while experience >= needed and level < 30:
            experience = experience - needed
            needed = needed * (1.05 + 0.1 * growth)
            level += 1
        return level + experience / needed

    return progress


@program(roll=real(0.0, 1.0), luck=whole(0, 2))
def loot_table(rarity, prices=weights(4, low=1.0, high=9.0)):
    def value(roll, luck):
        chances = [0.5, 0.3, 0.15, 0.05]
        for _ in range(luck):
            chances = [c * (i + 1) for i, c in enumerate(chances)]
        total = sum(chances)
        running = 0.0
        for i, chance in enumerate(chances):
            running += chance / total
            if roll <= running:
                return prices[i] * (rarity * i / 2).exp()
        return prices[-1]

    return value


@program(distance=real(5.0, 20.0), wind=real(-2.0, 2.0))
def artillery_shot(angle, charge):
    def miss(distance, wind):
        x, y = 0.0, 0.0
        vx, vy = 12 * charge * angle.cos(), 12 * charge * angle.sin()
        for _ in range(60):
            vx = vx + 0.1 * (0.1 * wind - 0.02 * vx)
            vy = vy - 0.981
            x, y = x + 0.1 * vx, y + 0.1 * vy
            if y < 0.0:
                break
        return (x - distance) ** 2

    return miss


@program(ball=pair(real(0.1, 0.9), real(0.1, 0.9)), velocity=pair(real(-0.4, 0.4), real(0.2, 0.5)))
def pong(gain, bounce):
    def paddle_error(ball, velocity):
        (x, y), (vx, vy) = ball, velocity
        paddle = 0.5
        for _ in range(2):
            x, y = x + vx, y + vy
            if x < 0 or x > 1:
                vx = -vx * bounce
                x = -x if x < 0 else 2 - x
            if y > 1:
                vy, y = -vy, 2 - y
            elif y < 0:
                vy, y = -vy, -y
            paddle = paddle + 0.3 * gain * (x - paddle)
        return (paddle - x) ** 2

    return paddle_error


@program(keys=text("rrjr", "rjrjr", "lljrr", "jjjj"), floor=real(-0.2, 0.2))
def platform_jump(speed, jump, gravity):
    def reach(keys, floor):
        x, y, vy = 0.0, 1.0, 0.0
        on_ground = False
        for key in keys * 3:
            if key == "r":
                x = x + 0.2 * speed
            elif key == "l":
                x = x - 0.2 * speed
            elif key == "j" and on_ground:
                vy, on_ground = jump, False
            vy = vy - 0.3 * gravity
            y = y + 0.5 * vy
            if y <= floor:
                y, vy, on_ground = floor, 0.0, True
        return x + 0.5 * y + 0 * jump

    return reach


@program(places=array(3, 2, lo=-1.0, hi=1.0), headings=array(3, 2, lo=-0.5, hi=0.5))
def boids(cohesion, separation, alignment):
    def energy(places, headings):
        total = 0.0
        for i in range(len(places)):
            others = [j for j in range(len(places)) if j != i and np.linalg.norm(places[i] - places[j]) < 1.5]
            if not others:
                continue
            center = places[others].mean(axis=0)
            flow = headings[others].mean(axis=0)
            push = sum((places[i] - places[j]) / (0.1 + ((places[i] - places[j]) ** 2).sum()) for j in others)
            for axis in range(2):
                steer = cohesion * (center[axis] - places[i, axis]) + alignment * (flow[axis] - headings[i, axis])
                total += (steer + 0.1 * separation * push[axis]) ** 2
        return wengert.sqrt(total + 1e-6)

    return energy


@program(seed=whole(0, 5), hands=whole(2, 4))
def deal_and_count(high_card, spread):
    def advantage(seed, hands):
        deck = [rank for rank in range(2, 15) for _ in range(4)]
        random.Random(seed).shuffle(deck)
        points = [sum(max(0, card - 10) for card in deck[i::hands][:13]) for i in range(hands)]
        mean = sum(points) / hands
        return high_card * (points[0] - mean) + spread * (max(points) - min(points))

    return advantage


@program(word=text("quartz", "jazz", "banana", "oxidize"), column=whole(0, 6))
def scrabble_word(common, rare, bonus):
    def points(word, column):
        total, multiplier = 0.0, 1
        for offset, letter in enumerate(word):
            value = 10 * rare if letter in "jqxz" else (common if letter in set("aeiou") else 2 * common)
            square = (column + offset) % 7
            if square == 3:
                value = value * 2
            elif square == 6:
                multiplier *= 2
            total += value
        return total * multiplier + (bonus if len(word) >= 7 else 0.0)

    return points


@program(row=wholes(4, 0, 3), moves=whole(1, 3), engine="each position takes a path of its own")
def merging_tiles(tile, empty):
    def slide(tiles):
        tiles = [t for t in tiles if t]
        merged = []
        while tiles:
            if len(tiles) > 1 and tiles[0] == tiles[1]:
                merged.append(tiles.pop(0) + 1)
                tiles.pop(0)
            else:
                merged.append(tiles.pop(0))
        return merged + [0] * (4 - len(merged))

    def score(row, moves):
        for _ in range(moves):
            row = slide(row)
        return sum(tile * 2**t for t in row if t) + empty * row.count(0) + 0 * tile

    return score


@program(creeps=reals(6, 0.0, 10.0), health=reals(6, 1.0, 5.0), engine="each wave takes a path of its own")
def tower_defence(reach, damage, splash):
    def remaining(creeps, health):
        health = list(health)
        radius = 2 + 2 * reach.data
        for tower in (2.0, 5.0, 8.0):
            target, furthest = None, -1.0
            for i, place in enumerate(creeps):
                if abs(place - tower) <= radius and place > furthest and health[i] > 0:
                    target, furthest = i, place
            if target is None:
                continue
            for i, place in enumerate(creeps):
                near = abs(place - creeps[target])
                if i == target or near < 1:
                    health[i] = health[i] - damage * (1 if i == target else splash.sigmoid() * (1 - near))
        return sum(wengert.maximum(h, 0.0) for h in health) + 0.01 * reach

    return remaining


@program(a=pair(whole(-3, 3), whole(-3, 3)), b=pair(whole(-3, 3), whole(-3, 3)), terrain=wholes(7, 1, 3))
def hexagon_movement(grass, swamp):
    def cost(a, b, terrain):
        (q1, r1), (q2, r2) = a, b
        distance = (abs(q1 - q2) + abs(q1 + r1 - q2 - r2) + abs(r1 - r2)) // 2
        total = 0.0 * grass
        for step in range(distance):
            kind = terrain[step % len(terrain)]
            total += [grass, 2 * grass, 3 * swamp][kind - 1]
        return total

    return cost


@program(rolls=wholes(10, 1, 20), armor=whole(10, 15), engine="each fight takes a path of its own")
def turn_based_fight(might, guard, healing):
    def outcome(rolls, armor):
        hero, monster, state = 5.0 + guard, 6.0, "attack"
        for roll in rolls:
            if state == "attack":
                if roll == 20:
                    monster = monster - 2 * might
                elif roll >= armor:
                    monster = monster - might
                state = "defend"
            else:
                if roll > 8:
                    hero = hero - 1.5 / (1 + guard)
                state = "heal" if hero < 4.0 else "attack"
            if state == "heal":
                hero = hero + 0.5 * healing
                state = "attack"
            if monster <= 0 or hero <= 0:
                break
        return hero - monster

    return outcome


@program(heads=wholes(2, 0, 8), body=whole(2, 6))
def snake_features(food, wall, tail):
    def value(heads, body):
        total = 0.0
        for head, target in zip(heads, heads[1:]):
            x, y, fx, fy = head % 3, head // 3, target % 3, target // 3
            total += food * -(abs(x - fx) + abs(y - fy))
            total -= wall * (x in (0, 2)) + wall * (y in (0, 2))
            total -= tail * max(0, body - (x + y))
        return total

    return value


@program(guesses=text("crane", "slate", "audio"), secret=text("crate", "audit", "slant"))
def word_guessing(green, yellow, grey):
    def information(guesses, secret):
        left = Counter(secret)
        marks = ["grey"] * 5
        for i, (g, s) in enumerate(zip(guesses, secret)):
            if g == s:
                marks[i] = "green"
                left[g] -= 1
        for i, g in enumerate(guesses):
            if marks[i] == "grey" and left[g] > 0:
                marks[i] = "yellow"
                left[g] -= 1
        worth = {"green": green, "yellow": yellow, "grey": grey}
        return sum(worth[m] * 0.9**i for i, m in enumerate(marks))

    return information


@program(coins=reals(4, 0.0, 1.0))
def shapley_values(synergy, base):
    def fairness(coins):
        def worth(coalition):
            s = sum(coins[i] for i in coalition)
            return base * s + synergy * s**2 if coalition else 0.0

        n = len(coins)
        shares = []
        for player in range(n):
            others = [i for i in range(n) if i != player]
            value = 0.0
            for size in range(n):
                weight = math.factorial(size) * math.factorial(n - size - 1) / math.factorial(n)
                for group in combinations(others, size):
                    value += weight * (worth((*group, player)) - worth(group))
            shares.append(value)
        return wengert.max(*shares) - wengert.min(*shares)

    return fairness


@program(clues=wholes(2, 0, 3))
def soft_latin_square(temperature, logits=weights(9, 3)):
    def violation(clues):
        cells = []
        for clue, row in zip([*clues, *[0] * 7], logits):
            p = wengert.softmax([x * temperature for x in row])
            cells.append([1.0 if k + 1 == clue else 0.0 for k in range(3)] if clue else p)
        loss = 0.0 * temperature
        for k in range(3):
            for line in LINES[:6]:
                loss += (sum(cells[i][k] for i in line) - 1) ** 2
        return loss

    return violation
