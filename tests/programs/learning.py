"""Programs of machine learning: networks, sequence models, kernels, trees, embeddings, generative models, agents."""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict

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
from wengert import Value, nn


def linear(x, w, b):
    return [sum((wi * xi for wi, xi in zip(row, x)), bias) for row, bias in zip(w, b)]


@program(x=reals(3, -2.0, 2.0), label=choice(-1, 1))
def perceptron(bias, w=weights(3)):
    def loss(x, label):
        score = sum(a * b for a, b in zip(w, x)) + bias
        if score.data * label > 0:
            return 0.0 * score
        return -label * score

    return loss


@program(x=reals(2, -2.0, 2.0), y=real(-1.0, 1.0))
def two_layer_network(b2, w1=weights(4, 2), b1=weights(4), w2=weights(4)):
    def squared_error(x, y):
        hidden = [h.tanh() for h in linear(x, w1, b1)]
        return (sum(w * h for w, h in zip(w2, hidden)) + b2 - y) ** 2

    return squared_error


class Neuron:
    def __init__(self, w, b, nonlinear=True):
        self.w, self.b, self.nonlinear = w, b, nonlinear

    def __call__(self, x):
        act = sum((wi * xi for wi, xi in zip(self.w, x)), self.b)
        return act.relu() if self.nonlinear else act

    def parameters(self):
        return [*self.w, self.b]


class Network:
    def __init__(self, layers):
        self.layers = layers

    def __call__(self, x):
        for layer in self.layers:
            x = [neuron(x) for neuron in layer]
        return x[0] if len(x) == 1 else x

    def parameters(self):
        return [p for layer in self.layers for neuron in layer for p in neuron.parameters()]


@program(x=reals(2, -2.0, 2.0), y=choice(-1.0, 1.0))
def hinge_with_decay(b, w1=weights(3, 2), b1=weights(3), w2=weights(3)):
    model = Network([[Neuron(w, bias) for w, bias in zip(w1, b1)], [Neuron(w2, b, nonlinear=False)]])

    def loss(x, y):
        data = (1 + -y * model(x)).relu()
        decay = 1e-2 * sum(p * p for p in model.parameters())
        return data + decay

    return loss


@program(x=array(4, lo=-1.0, hi=1.0), target=whole(0, 2))
def library_mlp(gain, shift):
    random.seed(4)
    model = nn.MLP(4, [5, 3])

    def loss(x, target):
        logits = model([gain * v + shift for v in x])
        return -wengert.log_softmax(logits)[target]

    return loss


@program(x=reals(4, -1.0, 1.0), label=whole(0, 2))
def softmax_classifier(w=weights(3, 4), b=weights(3)):
    def cross_entropy(x, label):
        logits = linear(x, w, b)
        top = max(logit.data for logit in logits)
        exps = [(logit - top).exp() for logit in logits]
        return -(exps[label] / sum(exps)).log()

    return cross_entropy


@program(tokens=wholes(5, 0, 4))
def neural_bigram(embedding=weights(5, 2), output=weights(5, 2)):
    def loss(tokens):
        total = 0.0
        for current, following in zip(tokens, tokens[1:]):
            h = embedding[current]
            logits = [sum(a * b for a, b in zip(row, h)) for row in output]
            total += -wengert.log_softmax(logits)[following]
        return total / (len(tokens) - 1)

    return loss


@program(tokens=wholes(4, 0, 3), target=whole(0, 3))
def causal_self_attention(wte=weights(4, 3), wpe=weights(4, 3), wq=weights(3, 3), wk=weights(3, 3), wv=weights(3, 3)):
    def matvec(w, x):
        return [sum(a * b for a, b in zip(row, x)) for row in w]

    def loss(tokens, target):
        keys, values = [], []
        for position, token in enumerate(tokens):
            x = [t + p for t, p in zip(wte[token], wpe[position])]
            scale = (sum(v * v for v in x) / len(x) + 1e-5) ** -0.5
            x = [v * scale for v in x]
            keys.append(matvec(wk, x))
            values.append(matvec(wv, x))
            q = matvec(wq, x)
            attention = wengert.softmax([sum(a * b for a, b in zip(q, k)) / math.sqrt(3) for k in keys])
            out = [sum(a * v[i] for a, v in zip(attention, values)) + x[i] for i in range(3)]
        return -wengert.log_softmax(matvec(wte, out))[target]

    return loss


@program(sequence=reals(6, -1.0, 1.0), target=real(-1.0, 1.0))
def simple_recurrent_network(w_out, w_in=weights(2), w_h=weights(2, 2), b=weights(2)):
    def loss(sequence, target):
        h = [0.0, 0.0]
        for x in sequence:
            h = [wengert.tanh(w_in[i] * x + w_h[i][0] * h[0] + w_h[i][1] * h[1] + b[i]) for i in range(2)]
        return (w_out * h[0] - h[1] - target) ** 2

    return loss


@program(sequence=matrix(4, 2, -1.0, 1.0), reset=flag())
def gated_recurrent_unit(wz=weights(4), wr=weights(4), wh=weights(4)):
    def final_state(sequence, reset):
        h = Value(0.0)
        for step, (a, b) in enumerate(sequence):
            if reset and step == 2:
                h = Value(0.0)
            z = (wz[0] * a + wz[1] * b + wz[2] * h + wz[3]).sigmoid()
            r = (wr[0] * a + wr[1] * b + wr[2] * h + wr[3]).sigmoid()
            candidate = (wh[0] * a + wh[1] * b + wh[2] * (r * h) + wh[3]).tanh()
            h = (1 - z) * h + z * candidate
        return h

    return final_state


@program(sequence=reals(5, -1.0, 1.0))
def long_short_term_memory(gates=weights(4, 3)):
    def final_output(sequence):
        h, c = 0.0, 0.0
        for x in sequence:
            i, f, o, g = (w[0] * x + w[1] * h + w[2] for w in gates)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
        return h

    return final_output


@program(image=array(5, 5, lo=0.0, hi=1.0), label=whole(0, 1))
def convolution_and_pooling(b, kernel=weights(3, 3), head=weights(2)):
    def loss(image, label):
        k = np.array(kernel, dtype=object)
        h, w = image.shape
        maps = [[((image[i : i + 3, j : j + 3] * k).sum() + b).relu() for j in range(w - 2)] for i in range(h - 2)]
        pooled = wengert.max([v for row in maps for v in row])
        logits = [head[0] * pooled, head[1] * pooled + b]
        return wengert.logsumexp(logits) - logits[label]

    return loss


@program(x=reals(5, -3.0, 3.0), eps=choice(1e-5, 1e-3))
def layer_normalisation(gamma=weights(5), beta=weights(5)):
    def loss(x, eps):
        mu = sum(x) / len(x)
        var = sum((v - mu) ** 2 for v in x) / len(x)
        y = [g * (v - mu) / math.sqrt(var + eps) + b for v, g, b in zip(x, gamma, beta)]
        return sum(v * v for v in y)

    return loss


@program(x=reals(4, -1.0, 1.0), mask=wholes(4, 0, 1), training=flag())
def dropout_by_a_mask(keep, w=weights(4)):
    def output(x, mask, training):
        p = 0.5 + 0.4 * keep.sigmoid()
        total = 0.0
        for xi, wi, m in zip(x, w, mask):
            h = (wi * xi).silu()
            total += h * m / p if training else h
        return total * p

    return output


@program(x=reals(3, -1.0, 1.0), noise=reals(2, -2.0, 2.0))
def variational_autoencoder(w_mu=weights(2, 3), w_log=weights(2, 3), decode=weights(3, 2)):
    def negative_elbo(x, noise):
        mu = [sum(a * b for a, b in zip(row, x)) for row in w_mu]
        log_var = [sum(a * b for a, b in zip(row, x)).tanh() for row in w_log]
        z = [m + (0.5 * lv).exp() * e for m, lv, e in zip(mu, log_var, noise)]
        rebuilt = [sum(a * b for a, b in zip(row, z)) for row in decode]
        error = sum((a - b) ** 2 for a, b in zip(x, rebuilt))
        kl = -0.5 * sum(1 + lv - m * m - lv.exp() for m, lv in zip(mu, log_var))
        return error + 0.1 * kl

    return negative_elbo


@program(real_sample=real(-2.0, 2.0), latent=real(-2.0, 2.0), player=text("generator", "discriminator"))
def adversarial_losses(slope, offset, d_slope, d_offset):
    def loss(real_sample, latent, player):
        fake = slope * latent + offset
        if player == "generator":
            return -(d_slope * fake + d_offset).logsigmoid()
        fake = fake.detach()
        return -(d_slope * real_sample + d_offset).logsigmoid() - (-(d_slope * fake + d_offset)).logsigmoid()

    return loss


@program(anchor=reals(3), positive=reals(3), negatives=matrix(3, 3))
def contrastive_loss(temperature, projection=weights(2, 3)):
    def embed(x):
        h = [sum(a * b for a, b in zip(row, x)) for row in projection]
        norm = (sum(v * v for v in h) + 1e-8).sqrt()
        return [v / norm for v in h]

    def info_nce(anchor, positive, negatives):
        a = embed(anchor)
        scores = [sum(u * v for u, v in zip(a, embed(x))) / (0.1 + temperature) for x in [positive, *negatives]]
        return wengert.logsumexp(scores) - scores[0]

    return info_nce


@program(anchor=reals(2), near=reals(2), far=reals(2), margin=real(0.1, 1.0))
def triplet_loss(stretch, shear):
    def distance(p, q):
        dx, dy = stretch * (p[0] - q[0]) + shear * (p[1] - q[1]), p[1] - q[1]
        return wengert.hypot(dx, dy)

    def loss(anchor, near, far, margin):
        gap = distance(anchor, near) - distance(anchor, far) + margin
        return max(gap, 0.0 * gap)

    return loss


@program(points=matrix(2, 2, -2.0, 2.0))
def k_means_objective(centers=weights(3, 2)):
    def inertia(points):
        total, counts = 0.0, [0, 0, 0]
        for p in points:
            distances = [sum((a - b) ** 2 for a, b in zip(p, c)) for c in centers]
            nearest = min(range(3), key=lambda i: distances[i].data)
            counts[nearest] += 1
            total += distances[nearest]
        return total / len(points)

    return inertia


@program(query=reals(2, -1.0, 1.0), memory=matrix(3, 2, -1.0, 1.0), k=whole(1, 2))
def nearest_neighbours(bandwidth, scores=weights(3)):
    def predict(query, memory, k):
        ranked = sorted((math.dist(query, m), i) for i, m in enumerate(memory))[:k]
        kernel = [(-d / (0.3 + bandwidth)).exp() for d, _ in ranked]
        return sum(w * scores[i] for w, (_, i) in zip(kernel, ranked)) / sum(kernel)

    return predict


@program(x=reals(3, -1.0, 1.0))
def decision_tree(a, b, c, d):
    tree = {
        "feature": 0,
        "threshold": 0.1,
        "left": {"feature": 1, "threshold": -0.3, "left": a, "right": b},
        "right": {"feature": 2, "threshold": 0.2, "left": c, "right": d},
    }

    def leaf(x):
        node = tree
        while isinstance(node, dict):
            node = node["left"] if x[node["feature"]] <= node["threshold"] else node["right"]
        return node * 1.0

    return leaf


@program(x=reals(3, -1.0, 1.0), depth=whole(1, 3))
def soft_decision_tree(sharpness, gates=weights(7, 3), leaves=weights(8)):
    def predict(x, depth):
        def visit(node, level):
            if level == depth:
                return leaves[node - 2**depth]
            p = (sharpness * sum(g * v for g, v in zip(gates[node - 1], x))).sigmoid()
            return p * visit(2 * node, level + 1) + (1 - p) * visit(2 * node + 1, level + 1)

        return visit(1, 0)

    return predict


@program(x=reals(2, -1.0, 1.0), y=whole(0, 1), kernel=text("rbf", "polynomial", "linear"))
def kernel_machine(gamma, alphas=weights(4)):
    support = [(0.5, 0.5), (-0.5, 0.5), (0.2, -0.8), (-0.9, -0.1)]
    kernels = {
        "rbf": lambda p, q: (-gamma * sum((a - b) ** 2 for a, b in zip(p, q))).exp(),
        "polynomial": lambda p, q: (gamma * sum(a * b for a, b in zip(p, q)) + 1) ** 3,
        "linear": lambda p, q: gamma * sum(a * b for a, b in zip(p, q)),
    }

    def hinge(x, y, kernel):
        k = kernels[kernel]
        score = sum(alpha * k(x, s) for alpha, s in zip(alphas, support))
        sign = 1 if y else -1
        return (1 - sign * score).relu() + 0.01 * sum(a * a for a in alphas)

    return hinge


@program(words=text("good good fun", "bad dull plot", "fun plot", "dull good unknown"), label=whole(0, 1))
def naive_bayes(smoothing, prior):
    documents = [("good fun plot", 1), ("good good", 1), ("bad dull", 0), ("dull plot bad bad", 0)]
    counts = defaultdict(Counter)
    for document, y in documents:
        counts[y].update(document.split())
    vocabulary = {w for c in counts.values() for w in c}

    def log_loss(words, label):
        scores = []
        for y in (0, 1):
            total = sum(counts[y].values())
            score = prior if y else -prior
            for word in words.split():
                score = score + wengert.log((counts[y][word] + smoothing) / (total + smoothing * len(vocabulary)))
            scores.append(score)
        return -wengert.log_softmax(scores)[label]

    return log_loss


@program(user=whole(0, 3), item=whole(0, 4), rating=real(1.0, 5.0))
def matrix_factorisation(mean, users=weights(4, 3), items=weights(5, 3)):
    def loss(user, item, rating):
        u, v = users[user], items[item]
        predicted = 3 + mean + sum(a * b for a, b in zip(u, v))
        return (rating - predicted) ** 2 + 0.02 * (sum(a * a for a in u) + sum(b * b for b in v))

    return loss


@program(features=wholes(3, 0, 5), value=reals(3, 0.0, 1.0), clicked=whole(0, 1))
def factorisation_machine(w0, w=weights(6), v=weights(6, 2)):
    def log_loss(features, value, clicked):
        score = w0
        for f, x in zip(features, value):
            score = score + w[f] * x
        for k in range(2):
            inner = [v[f][k] * x for f, x in zip(features, value)]
            score = score + 0.5 * (sum(inner) ** 2 - sum(t * t for t in inner))
        return wengert.softplus(-score if clicked else score)

    return log_loss


@program(center=whole(0, 4), context=whole(0, 4), negatives=wholes(3, 0, 4))
def skip_gram_with_negatives(inside=weights(5, 3), outside=weights(5, 3)):
    def loss(center, context, negatives):
        h = inside[center]
        total = -sum(a * b for a, b in zip(h, outside[context])).logsigmoid()
        for n in negatives:
            total -= (-sum(a * b for a, b in zip(h, outside[n]))).logsigmoid()
        return total

    return loss


@program(observations=matrix(4, 2, -1.0, 1.0), tags=wholes(4, 0, 2))
def conditional_random_field(transitions=weights(3, 3), emission=weights(3, 2)):
    def negative_log_likelihood(observations, tags):
        scores = [[sum(a * b for a, b in zip(e, x)) for e in emission] for x in observations]
        path = scores[0][tags[0]]
        alpha = scores[0]
        for t in range(1, len(tags)):
            path = path + transitions[tags[t - 1]][tags[t]] + scores[t][tags[t]]
            alpha = [
                wengert.logsumexp([a + transitions[i][j] for i, a in enumerate(alpha)]) + scores[t][j] for j in range(3)
            ]
        return wengert.logsumexp(alpha) - path

    return negative_log_likelihood


@program(visible=wholes(4, 0, 1))
def boltzmann_free_energy(w=weights(3, 4), a=weights(4), b=weights(3)):
    def free_energy(visible):
        linear_part = sum(v * bias for v, bias in zip(visible, a))
        hidden = sum((bias + sum(wi * v for wi, v in zip(row, visible))).softplus() for row, bias in zip(w, b))
        return -linear_part - hidden

    return free_energy


@program(state=reals(4, -1.0, 1.0), steps=whole(1, 4))
def hopfield_energy(beta, patterns=weights(2, 4)):
    def energy_after(state, steps):
        x = list(state)
        for _ in range(steps):
            attention = wengert.softmax([2 * beta * sum(p * v for p, v in zip(row, x)) for row in patterns])
            x = [sum(a * row[i] for a, row in zip(attention, patterns)) for i in range(len(x))]
        return 0.5 * sum(v * v for v in x)

    return energy_after


@program(x=pair(real(-2.0, 2.0), real(-2.0, 2.0)), layers=whole(1, 3))
def normalising_flow(scale, shift, twist):
    def log_density(x, layers):
        a, b = x
        log_det = 0.0 * scale
        for layer in range(layers):
            s = (scale * a).tanh()
            b = b * s.exp() + shift * a
            log_det = log_det + s
            a, b = b, a + twist * (layer + 1) / 10
        return -(a * a + b * b) / 2 - math.log(2 * math.pi) + log_det

    return log_density


@program(start=reals(2, -1.0, 1.0), target=reals(2, -1.0, 1.0), until=real(0.2, 1.0))
def neural_differential_equation(w=weights(2, 2), b=weights(2)):
    def miss(start, target, until):
        state, steps = start, 6
        for _ in range(steps):
            slope = [h.tanh() for h in linear(state, w, b)]
            half = [s + until / steps / 2 * d for s, d in zip(state, slope)]
            slope = [h.tanh() for h in linear(half, w, b)]
            state = [s + until / steps * d for s, d in zip(state, slope)]
        return sum((s - t) ** 2 for s, t in zip(state, target))

    return miss


@program(x=array(3, lo=-1.0, hi=1.0))
def autoencoder_in_numpy(encode=weights(2, 3), decode=weights(3, 2)):
    def loss(x):
        e, d = np.array(encode, dtype=object), np.array(decode, dtype=object)
        hidden = np.tanh(e @ x)
        return ((d @ hidden - x) ** 2).sum()

    return loss


@program(x=reals(3, -1.0, 1.0), y=real(-1.0, 1.0), stages=whole(1, 4))
def boosted_stumps(rate, steps=weights(4), values=weights(4)):
    def residual(x, y, stages):
        prediction = 0.0
        for t in range(stages):
            feature, threshold = t % 3, (-1) ** t * 0.2
            side = values[t] if x[feature] > threshold else -steps[t]
            prediction += rate * 0.7**t * side
        return (y - prediction) ** 2

    return residual


@program(x=reals(3, -1.0, 1.0), active=whole(1, 3))
def mixture_of_experts(gate=weights(3, 3), experts=weights(3, 3)):
    def output(x, active):
        logits = [sum(a * b for a, b in zip(row, x)) for row in gate]
        chosen = sorted(range(3), key=lambda i: logits[i], reverse=True)[:active]
        share = wengert.softmax([logits[i] for i in chosen])
        return sum(s * sum(a * b for a, b in zip(experts[i], x)).gelu() for s, i in zip(share, chosen))

    return output


@program(logits=reals(4, -2.0, 2.0), label=whole(0, 3), smoothing=real(0.0, 0.3))
def smoothed_focal_loss(temperature, focus):
    def loss(logits, label, smoothing):
        log_p = wengert.log_softmax([z / (0.5 + temperature) for z in logits])
        total = 0.0
        for i, lp in enumerate(log_p):
            target = smoothing / len(logits) + (1 - smoothing if i == label else 0.0)
            total -= target * (1 - lp.exp()) ** focus * lp
        return total

    return loss


@program(teacher=reals(3, -2.0, 2.0), x=reals(2, -1.0, 1.0), mix=real(0.0, 1.0))
def knowledge_distillation(temperature, w=weights(3, 2)):
    def loss(teacher, x, mix):
        t = 1 + temperature
        student = [sum(a * b for a, b in zip(row, x)) for row in w]
        soft = wengert.softmax([z / t for z in teacher])
        log_q = wengert.log_softmax([z / t for z in student])
        kl = t**2 * sum(p * (p.log() - q) for p, q in zip(soft, log_q))
        hard = -wengert.log_softmax(student)[teacher.index(max(teacher))]
        return mix * kl + (1 - mix) * hard

    return loss


@program(advantage=real(-2.0, 2.0), old=real(-2.0, -0.1), action=whole(0, 2), state=reals(2, -1.0, 1.0))
def proximal_policy(policy=weights(3, 2)):
    def loss(advantage, old, action, state):
        log_pi = wengert.log_softmax([sum(a * b for a, b in zip(row, state)) for row in policy])
        ratio = (log_pi[action] - old).exp()
        clipped = ratio.clip(0.8, 1.2)
        entropy = -sum(lp.exp() * lp for lp in log_pi)
        return -wengert.min(ratio * advantage, clipped * advantage) - 0.01 * entropy

    return loss


@program(transition=record(state=reals(2), action=whole(0, 1), reward=real(-1.0, 1.0), following=reals(2), done=flag()))
def temporal_difference(discount, online=weights(2, 2), frozen=weights(2, 2)):
    def loss(transition):
        q = [sum(w * s for w, s in zip(row, transition["state"])) for row in online]
        target = transition["reward"]
        if not transition["done"]:
            ahead = [sum(w.data * s for w, s in zip(row, transition["following"])) for row in frozen]
            target += 0.9 * max(ahead)
        return (q[transition["action"]] - target) ** 2 + 0 * discount

    return loss


@program(x=reals(3, -1.0, 1.0), y=real(-1.0, 1.0), steps=whole(1, 4))
def learned_optimiser_unrolled(rate, momentum, curvature):
    def final_loss(x, y, steps):
        w, v = [0.1, -0.2, 0.3], [0.0, 0.0, 0.0]
        for _ in range(steps):
            error = sum(a * b for a, b in zip(w, x)) - y
            slope = [2 * error * xi + 0.1 * curvature * wi for xi, wi in zip(x, w)]
            v = [momentum.sigmoid() * vi - 0.1 * rate * g for vi, g in zip(v, slope)]
            w = [wi + vi for wi, vi in zip(w, v)]
        return (sum(a * b for a, b in zip(w, x)) - y) ** 2

    return final_loss


@program(x=reals(2, -1.0, 1.0), confidence=real(0.5, 0.9))
def early_exit_network(w=weights(3, 2, 2), heads=weights(3, 2)):
    def output(x, confidence):
        h = x
        for layer, head in zip(w, heads):
            h = [(sum(a * b for a, b in zip(row, h))).tanh() for row in layer]
            p = sum(a * b for a, b in zip(head, h)).sigmoid()
            if max(p.data, 1 - p.data) > confidence:
                break
        return p

    return output


@program(nodes=array(4, 2, lo=-1.0, hi=1.0), adjacency=indices(4, 4, lo=0, hi=1))
def graph_convolution(self_weight, w=weights(2, 2), readout=weights(2)):
    def score(nodes, adjacency):
        degree = adjacency.sum(axis=1) + 1
        hidden = []
        for i in range(len(nodes)):
            message = (adjacency[i][:, None] * nodes).sum(axis=0) / degree[i]
            mixed = [self_weight * nodes[i, k] + message[k] for k in range(2)]
            hidden.append([sum(a * b for a, b in zip(row, mixed)).relu() for row in w])
        return sum(r * sum(h[k] for h in hidden) / len(hidden) for k, r in enumerate(readout))

    return score


@program(tree=choice((0, 1), ((0, 1), 2), ((0, 2), (1, 0)), (((1, 1), 2), 0)), label=whole(0, 1))
def recursive_tree_network(words=weights(3, 2), compose=weights(2, 4), head=weights(2)):
    def loss(tree, label):
        def encode(node):
            if isinstance(node, int):
                return words[node]
            both = encode(node[0]) + encode(node[1])
            return [sum(a * b for a, b in zip(row, both)).tanh() for row in compose]

        score = sum(a * b for a, b in zip(head, encode(tree)))
        return (-score if label else score).softplus()

    return loss


@program(series=reals(8, -1.0, 1.0), taps=whole(1, 3))
def dilated_convolution(bias, filters=weights(3, 3)):
    def last_output(series, taps):
        x = list(series)
        for layer in range(taps):
            gap = 2**layer
            padded = [0.0] * (2 * gap) + x
            f = filters[layer]
            x = [
                (f[0] * padded[t] + f[1] * padded[t + gap] + f[2] * padded[t + 2 * gap] + bias).tanh()
                for t in range(len(x))
            ]
        return x[-1]

    return last_output


@program(row=wholes(3, 0, 3), price=real(0.0, 10.0), sold=flag())
def embeddings_of_categories(bias, color=weights(4, 2), size=weights(4, 2), w=weights(5)):
    def log_loss(row, price, sold):
        c, s, month = row
        features = [*color[c], *size[s], math.log1p(price)]
        season = math.sin(2 * math.pi * month / 4)
        score = sum(a * f for a, f in zip(w, features)) + bias * season
        return -(score.logsigmoid() if sold else (-score).logsigmoid())

    return log_loss
