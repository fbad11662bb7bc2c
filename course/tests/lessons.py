"""The lessons as their learners hand them in: with every gap empty, filled right, and filled with each classic slip.

`python -m tests.lessons` walks the course in these ways, and prints what the check says each time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from wengert_course import Lesson, Report, check, lessons

LESSONS: dict[int, Lesson] = {lesson.number: lesson for lesson in lessons()}

Replaced = tuple[str, str]

SLIPS: dict[int, list[tuple[str, Replaced]]] = {
    0: [
        ("slope(f, x)", ("return (f(x + h) - f(x)) / h", "return f(x + h) - f(x)")),
        ("slope(f, x)", ("return (f(x + h) - f(x)) / h", "return (f(x) - f(x + h)) / h")),
        ("slope(f, x)", ("return (f(x + h) - f(x)) / h", "return f(x + h) / h")),
        ("slope(f, x)", ("return (f(x + h) - f(x)) / h", "return (f(x + h) - f(x - h)) / h")),
        ("slope(f, x)", ("h = 0.0001", "h = 0.1")),
        ("slope(f, x)", ("h = 0.0001", "h = 1e-18")),
        ("slopes(f, xs)", ("        moved = list(xs)\n", "        moved = moved if i else list(xs)\n")),
        ("slopes(f, xs)", ("        moved[i] += h\n", "        moved = [x + h for x in xs]\n")),
        ("slopes(f, xs)", ("moved[i] += h", "moved[0] += h")),
    ],
    1: [
        ("no Value returned", ("return Value(self.data + other.data)", "return self.data + other.data")),
        ("nothing returned", ("return Value(self.data * other.data)", "Value(self.data * other.data)")),
        ("wrong value", ("return Value(self.data * other.data)", "return Value(self.data + other.data)")),
        ("Value in a Value", ("return Value(self.data + other.data)", "return Value(Value(self.data + other.data))")),
        (
            "operand changed",
            ("return Value(self.data + other.data)", "self.data += other.data\n        return self"),
        ),
        ("number and Value mixed", ("self.data * other.data", "self.data * other")),
        ("repr", ('f"Value({self.data})"', '"Value"')),
        ("repr", ("return f", "f")),
        ("error", ("def __repr__(self)", "def __repr__()")),
        ("number not wrapped", ("other if isinstance(other, Value) else Value(other)\n        return Value(self.data +",
                                "Value(other) if isinstance(other, int) else other\n        return Value(self.data +")),
        ("operand changed", ("return Value(self.data * other.data)",
                             "other.data = self.data * other.data\n        return other")),
    ],
    2: [
        ("operand not passed on", ('(self, other), "+"', '(), "+"')),
        ("operand not passed on", ('(self, other), "*"', '(self,), "*"')),
        ("no Values in _prev", ('(self, other), "+"', '(self.data, other.data), "+"')),
        ("no Values in _prev", ('(self, other), "*"', '(self), "*"')),
        ("no Values in _prev", ("other = other if isinstance(other, Value) else Value(other)\n        return Value(self.data + other.data",
                                "n = other.data if isinstance(other, Value) else other\n        return Value(self.data + n")),
        ("symbol", ('(self, other), "*"', '(self, other), "+"')),
        ("label", ("self.label = label", 'self.label = ""')),
        ("nothing returned", ("return Value(self.data + other.data", "Value(self.data + other.data")),
    ],
    3: [
        ("no seed", ("L.grad = 1.0", "L.grad = L.data")),
        ("chain rule", ("a.grad = b.data * e.grad", "a.grad = b.data")),
        ("swapped factors", ("a.grad = b.data * e.grad", "a.grad = a.data * e.grad")),
        ("lost sign", ("c.grad = 1.0 * d.grad", "c.grad = -1.0 * d.grad")),
        ("sum rule", ("c.grad = 1.0 * d.grad", "c.grad = c.data * d.grad")),
        ("tanh rule", ("(1 - o.data**2) * o.grad", "(1 - n.data**2) * o.grad")),
        ("unknown", ("f.grad = d.data * L.grad", "f.grad = 0.7")),
        ("wrong gradient", ("d.grad = f.data * L.grad", "d.grad = f * L.grad")),
        ("unknown", ("x2w2.grad = both.grad\n", "x2w2.grad = both.grad\nboth.grad = 77.0\n")),
    ],
    4: [
        ("closure called", ("= self.data * out.grad\n\n        out._backward = _backward\n",
                            "= self.data * out.grad\n\n        out._backward = _backward()\n")),
        ("closure not assigned", ('        out = Value(t, (self,), "tanh")\n\n        def _backward():\n            '
                                  'self.grad = (1 - t**2) * out.grad\n\n        out._backward = _backward\n',
                                  '        out = Value(t, (self,), "tanh")\n\n        def _backward():\n            '
                                  'self.grad = (1 - t**2) * out.grad\n\n')),
        ("precedence", ("(1 - t**2) * out.grad", "1 - t**2 * out.grad")),
        ("swapped factors", ("self.grad = other.data * out.grad\n            other.grad = self.data * out.grad",
                             "self.grad = self.data * out.grad\n            other.grad = other.data * out.grad")),
        ("chain rule", ("(1 - t**2) * out.grad", "1 - t**2")),
        ("tanh rule", ("(1 - t**2) * out.grad", "(1 - self.data**2) * out.grad")),
        ("no Values in _prev", ('(self,), "tanh"', '(self), "tanh"')),
    ],
    5: [
        ("walk order", ("reversed(order)", "order")),
        ("no seed", ("        self.grad = 1.0\n", "")),
        ("visited again", ("if node not in visited:", "if True:")),
        ("root only", ("        for node in reversed(order):\n            node._backward()",
                       "        self._backward()")),
        ("seed in data", ("        self.grad = 1.0\n", "        self.data = 1.0\n")),
        ("not called", ("node._backward()", "node._backward")),
        ("root only", ("node._backward()", "self._backward()")),
        ("walk order", ("reversed(order)", "order.reverse()")),
        ("visited kept", ("    def backward(self):\n        order = []\n        visited = set()\n",
                          "    def backward(self, order=[], visited=set()):\n")),
        ("visited again", ("        for node in reversed(order):\n            node._backward()",
                           "\n        def walk(node):\n            node._backward()\n"
                           "            for operand in node._prev:\n                walk(operand)\n\n        walk(self)")),
    ],
    6: [
        ("overwritten gradients", ("self.grad += 1.0 * out.grad\n            other.grad += 1.0",
                                   "self.grad = 1.0 * out.grad\n            other.grad = 1.0")),
        ("overwritten gradients", ("self.grad += (1 - t**2)", "self.grad = (1 - t**2)")),
        ("overwritten gradients", ("other.grad += self.data", "other.grad = self.data")),
        ("chain rule", ("self.grad += 1.0 * out.grad\n            other.grad += 1.0 * out.grad",
                        "self.grad += 1.0\n            other.grad += 1.0")),
        ("operand left out", ("            other.grad += 1.0 * out.grad\n", "")),
        ("swapped factors", ("self.grad += other.data * out.grad\n            other.grad += self.data * out.grad",
                             "self.grad += self.data * out.grad\n            other.grad += other.data * out.grad")),
        ("same operand counted once", (
            "self.grad += other.data * out.grad\n            other.grad += self.data * out.grad",
            "self.grad, other.grad = self.grad + other.data * out.grad, other.grad + self.data * out.grad")),
    ],
    7: [
        ("reflected operands exchanged", ("return (-self) + other", "return self - other")),
        ("wrong value", ("return self + (-other)", "return self + other")),
        ("power rule", ("n * self.data ** (n - 1)", "self.data ** (n - 1)")),
        ("overwritten gradients", ("self.grad += out.data * out.grad", "self.grad = out.data * out.grad")),
        ("chain rule", ("self.grad += out.data * out.grad", "self.grad += out.data")),
        ("endless recursion", ("return self * -1", "return -self")),
        ("wrong value", ("return self + (-other)", "return other + (-self)")),
        ("closure not assigned", ("return self * -1", "return Value(-self.data)")),
        ("number not wrapped", ("self.data**n, (self,)", "self.data**n.data, (self,)")),
    ],
    8: [
        ("Neuron(3)", ("return act.tanh()", "return act")),
        ("Neuron(3)", ("zip(self.w, x)), self.b)", "zip(self.w, x)), Value(0.0))")),
        ("Layer(3, 4).parameters()", ("[Neuron(nin) for _ in range(nout)]", "[Neuron(nin)] * nout")),
        ("Neuron(3).parameters()", ("return self.w + [self.b]", "return [self.w, self.b]")),
        ("Neuron(3).parameters()", ("return self.w + [self.b]", "return self.w")),
        ("Neuron(3).parameters()", ("[Value(random.uniform(-1, 1)) for _ in range(nin)]",
                           "[random.uniform(-1, 1) for _ in range(nin)]")),
        ("MLP(3, [4, 4, 1])", ("            x = layer(x)\n        return x", "            return layer(x)")),
    ],
    9: [
        ("train(model, xs, ys, steps, rate)", ("        for p in model.parameters():\n            p.grad = 0.0\n", "")),
        ("train(model, xs, ys, steps, rate)", ("p.data -= rate * p.grad", "p.data += rate * p.grad")),
        ("train(model, xs, ys, steps, rate)", ("p.data -= rate * p.grad", "p -= rate * p.grad")),
        ("train(model, xs, ys, steps, rate)", ("p.data -= rate * p.grad", "p.grad -= rate * p.grad")),
        ("train(model, xs, ys, steps, rate)", ("p.data -= rate * p.grad", "p.data = -rate * p.grad")),
        (
            "train(model, xs, ys, steps, rate)",
            (
                "        for p in model.parameters():\n            p.grad = 0.0\n        loss.backward()\n",
                "        loss.backward()\n        for p in model.parameters():\n            p.grad = 0.0\n",
            ),
        ),
        ("train(model, xs, ys, steps, rate)", ("        loss.backward()\n", "")),
    ],
    10: [
        ("softmax(zs)", ("return [e / total for e in exps]", "return exps")),
        ("softmax(zs)", ("    return [e / total for e in exps]\n", "")),
        ("softmax(zs)", ("total = sum(exps)", "total = sum(exps) / 0")),
        ("softmax(zs)", ("exps = [z.exp() for z in zs]", "exps = zs")),
        ("cross_entropy(zs, k)", ("return -softmax(zs)[k].log()", "return softmax(zs)[k].log()")),
        ("cross_entropy(zs, k)", ("return -softmax(zs)[k].log()", "return -softmax(zs)[k]")),
        ("cross_entropy(zs, k)", ("return -softmax(zs)[k].log()", "return Value(-math.log(softmax(zs)[k].data))")),
        ("matmul(A, B)", ("for column in zip(*B)", "for column in B")),
        ("summed(gradient, shape)", ("gradient.sum(axis=0)", "gradient.mean(axis=0)")),
        ("summed(gradient, shape)", ("while gradient.ndim > len(shape):", "while False:")),
    ],
    11: [
        ("loss(w, b, xs, ys)", ("return total / len(ys)", "return total")),
        ("loss(w, b, xs, ys)", ("(predicted - y) ** 2", "(predicted - y)")),
        ("loss(w, b, xs, ys)", ("predicted = b\n", "predicted = Value(0.0)\n")),
        ("loss(w, b, xs, ys)", ("total = total + (predicted - y) ** 2", "total = (predicted - y) ** 2 * len(ys)")),
        ("loss(w, b, xs, ys)", ("return total / len(ys)", "return Value(total.data / len(ys))")),
    ],
    12: [
        ("counts(names)", ('ended = "." + name + "."', "ended = name")),
        ("counts(names)", ('ended = "." + name + "."', 'ended = name + "."')),
        ("counts(names)", ("table[letters.index(one)][letters.index(two)]",
                            "table[letters.index(two)][letters.index(one)]")),
        ("counts(names)", ("[letters.index(two)] += 1", "[letters.index(two)] = 1")),
        ("loss(logits, counts)", (" / sum(map(sum, counts))", "")),
        ("loss(logits, counts)", ("surprises.append(-n * log_p)", "surprises.append(n * log_p)")),
        ("loss(logits, counts)", ("surprises.append(-n * log_p)", "surprises.append(-log_p)")),
    ],
}  # fmt: skip
"""Lesson -> the name that the check has for a slip, in 1 to 7, or the line of the table that is wrong with it; and the
slip, as a replacement in the lesson's solution."""


def handed_in(folder: Path, number: int, *slip: Replaced, solved: bool = True) -> Path:
    """The notebook of a lesson, as a learner saves it."""
    lesson = LESSONS[number]
    notebook = lesson.notebook(solved)
    changed = 0
    for cell, source in zip(lesson.cells(), notebook["cells"], strict=True):
        text = "".join(source["source"])
        for old, new in slip if cell.is_gap else ():
            changed += text.count(old)
            text = text.replace(old, new)
        source["source"] = text.splitlines(keepends=True)
    assert changed == len(slip), f"lesson {number}: {slip} stands {changed} times in its gaps"
    path = folder / f"{lesson.name}.ipynb"
    path.write_text(json.dumps(notebook), encoding="utf-8")
    return path


def graded(path: Path) -> Report:
    """The report on a notebook, which says itself which step it is of."""
    return check(path, seed=0, timeout=60)


def walked(folder: Path) -> Iterator[tuple[int, str, Report]]:
    """The course from its first lesson to its last: how each was handed in, and the report on it."""
    for number in LESSONS:
        yield number, "empty", graded(handed_in(folder, number, solved=False))
        for name, slip in SLIPS[number]:
            yield number, name, graded(handed_in(folder, number, slip))
        yield number, "right", graded(handed_in(folder, number))


def verdict(report: Report) -> str:
    """What a report says, in a line."""
    right, of = report.score
    wrong = [finding.slip for finding in report.findings if not finding.note]
    lists = {"wrong": wrong, "not yet": [one.name for one in report.not_yet]}
    said = [f"{what}: {', '.join(names)}" for what, names in lists.items() if names]
    return "; ".join([f"{right} of {of} right", *said])


if __name__ == "__main__":
    print("| lesson | handed in | the verdict |\n|---|---|---|")
    with TemporaryDirectory() as name:
        for number, filled, report in walked(Path(name)):
            print(f"| {number} | {filled} | {verdict(report)} |", flush=True)
