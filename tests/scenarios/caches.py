"""Scenarios of functions that remember: functools, memos, cached properties, lazily made things."""

from __future__ import annotations

import functools
import itertools
import math
import operator
import re
from collections import OrderedDict

import numpy as np

import wengert
from tests.scenarios.kit import scenario
from wengert import Value


@scenario
def lru_cache_of_a_factor_that_is_cleared(compile):
    scale = [1.0]

    @functools.lru_cache
    def factor(n):
        return scale[0] + n

    w = Value(1.0)
    f = compile(lambda x, n: w * x * factor(n))
    for call in range(1, 25):
        if call == 6:
            scale[0] = 10.0  # what is in the cache stays as it is
        if call == 12:
            factor.cache_clear()
        yield f(0.5, call % 3), w
        yield factor.cache_info().currsize


@scenario
def lru_cache_of_two_that_keeps_throwing_out(compile):
    made = []

    @functools.lru_cache(maxsize=2)
    def table(n):
        made.append(n)
        return [k / (n + 1) for k in range(3)]

    w = Value(2.0)
    f = compile(lambda x, n: sum(w * x * t for t in table(n)))
    for call in range(1, 22):
        yield f(0.1 * call, 1 if call < 6 else call % 4), w
        yield list(made)


@scenario
def cache_over_values_by_identity(compile):
    @functools.cache
    def squared(v):
        return v * v

    a, b = Value(1.5), Value(-0.5)
    held = [a]
    f = compile(lambda x: squared(held[0]) * x)
    for call in range(1, 18):
        if call == 7:
            held[0] = b
        yield f(0.3 * call), a, b
        yield squared.cache_info().currsize


@scenario
def cached_property_that_is_deleted(compile):
    class Mesh:
        def __init__(self, n):
            self.n = n

        @functools.cached_property
        def spacing(self):
            return 1.0 / self.n

    mesh, w = Mesh(4), Value(1.0)
    f = compile(lambda x: w * x * mesh.spacing)
    for call in range(1, 22):
        if call == 6:
            mesh.n = 8  # stale on purpose, as Python has it
        if call == 12:
            del mesh.spacing
        if call == 18:
            mesh.spacing = -1.0
        yield f(1.0 * call), w


@scenario
def cached_property_of_an_argument_made_anew_each_call(compile):
    class Sample:
        def __init__(self, x):
            self.x = x

        @functools.cached_property
        def features(self):
            return [self.x, self.x**2]

    w = Value(0.7)

    def predict(x):
        sample = Sample(x)
        return w * sample.features[0] + sample.features[1] + sum(sample.features)

    f = compile(predict)
    for call in range(1, 14):
        yield f(0.3 * call), w
        yield f.map([0.1 * k - 0.1 * call for k in range(9)])


@scenario
def singledispatch_that_learns_another_type(compile):
    @functools.singledispatch
    def cost(x):
        return 0.0

    @cost.register
    def _(x: float):
        return 2.0 * x

    w = Value(1.0)
    f = compile(lambda x: w + cost(x))
    for call in range(1, 22):
        if call == 6:
            cost.register(float, lambda x: -x)
        if call == 13:
            cost.register(int, lambda x: 100.0 + x)
        yield f(0.5 * call if call % 5 else call), w


@scenario
def singledispatchmethod_on_own_classes(compile):
    class Circle:
        def __init__(self, r):
            self.r = r

    class Square:
        def __init__(self, side):
            self.side = side

    class Area:
        pi = 3.0

        @functools.singledispatchmethod
        def of(self, shape):
            raise TypeError(type(shape).__name__)

        @of.register(Circle)
        def _(self, shape):
            return self.pi * shape.r * shape.r

        @of.register(Square)
        def _(self, shape):
            return shape.side * shape.side

    area, w = Area(), Value(1.2)
    shapes = [Circle(w), Square(w)]
    f = compile(lambda x: sum(area.of(s) for s in shapes) * x)
    for call in range(1, 20):
        if call == 6:
            Area.pi = 3.14159
        if call == 12:
            shapes[0] = Square(w)
        yield f(0.1 * call), w


@scenario
def partial_over_a_list_that_changes(compile):
    coefficients = [1.0, 2.0]
    polynomial = functools.partial(lambda cs, x: sum(c * x**k for k, c in enumerate(cs)), coefficients)
    w = Value(0.5)
    f = compile(lambda x: polynomial(w * x))
    for call in range(1, 20):
        if call == 6:
            coefficients[1] = -1.0
        if call == 12:
            coefficients.append(0.5)
        yield f(0.2 * call), w
        yield f.map([0.2 * call + 0.3 * k for k in range(9)])


@scenario
def partial_of_a_partial_in_a_dict(compile):
    held = {"step": functools.partial(pow, exp=2)}
    w = Value(1.5)
    f = compile(lambda x: held["step"](w) * x)
    for call in range(1, 16):
        if call == 6:
            held["step"] = functools.partial(held["step"], exp=3)
        if call == 12:
            held["step"] = functools.partial(operator.mul, 4.0)
        yield f(0.5 * call), w


@scenario
def partialmethod_with_a_default_of_the_class(compile):
    class Window:
        width = 1.0

        def bump(self, x, power):
            return (x / self.width) ** power

        square = functools.partialmethod(bump, power=2)

    window, w = Window(), Value(1.0)
    f = compile(lambda x: w * window.square(x))
    for call in range(1, 18):
        if call == 6:
            window.width = 2.0
        if call == 12:
            Window.square = functools.partialmethod(Window.bump, power=1)
        yield f.mean([0.3 * call + 0.01 * k for k in range(64)]), w


@scenario
def reduce_with_an_operator_that_is_exchanged(compile):
    combine = {"with": operator.add}
    w = Value(0.9)
    f = compile(lambda xs: functools.reduce(combine["with"], xs, w))
    for call in range(1, 20):
        if call == 7:
            combine["with"] = operator.mul
        if call == 13:
            combine["with"] = max
        yield f([0.5, 0.1 * call, 1.5]), w


@scenario
def total_ordering_of_candidates(compile):
    @functools.total_ordering
    class Candidate:
        def __init__(self, weight, cost):
            self.weight, self.cost = weight, cost

        def __eq__(self, other):
            return self.cost == other.cost

        def __lt__(self, other):
            return self.cost < other.cost

    a, b = Value(1.0), Value(2.0)
    candidates = [Candidate(a, 0.5), Candidate(b, 0.7)]
    f = compile(lambda x: x * max(candidates).weight + min(candidates).cost)
    for call in range(1, 18):
        if call == 6:
            candidates[0].cost = 0.9
        if call == 12:
            candidates[1].cost = 0.95
        yield f(0.5 * call), a, b
        yield f.map([0.5 * call + 0.25 * k for k in range(9)])


@scenario
def wraps_whose_wrapped_is_replaced(compile):
    def inner(x):
        return x * 2.0

    @functools.wraps(inner)
    def outer(x):
        return outer.__wrapped__(x)

    w = Value(1.0)
    f = compile(lambda x: w * outer(x))
    for call in range(1, 16):
        if call == 6:
            outer.__wrapped__ = lambda x: x - 7.0
        yield f.mean([0.1 * call + 0.05 * k for k in range(64)]), w


@scenario
def cmp_to_key_by_a_comparison_that_turns(compile):
    direction = [1]

    def compare(a, b):
        return direction[0] * ((a > b) - (a < b))

    w = Value(2.0)
    f = compile(lambda xs: w * sorted(xs, key=functools.cmp_to_key(compare))[0])
    for call in range(1, 16):
        if call == 6:
            direction[0] = -1
        yield f([0.1 * call, 1.0, -0.2 * call]), w


@scenario
def memo_in_a_default_argument(compile):
    def fib(n, memo={}):  # noqa: B006  as users write it
        if n not in memo:
            memo[n] = n if n < 2 else fib(n - 1) + fib(n - 2)
        return memo[n]

    w = Value(0.01)
    f = compile(lambda x, n: w * x * fib(n))
    for call in range(1, 22):
        yield f(1.0, 3 if call < 6 else 3 + call), w
        yield len(fib.__defaults__[0])


@scenario
def memo_class_with_call_and_missing(compile):
    class Memo(dict):
        def __init__(self, function):
            super().__init__()
            self.function = function

        def __missing__(self, key):
            self[key] = self.function(key)
            return self[key]

    squares, w = Memo(lambda n: float(n * n)), Value(1.0)
    f = compile(lambda x, n: w * x + squares[n])
    for call in range(1, 20):
        if call == 12:
            squares[2] = -1.0
        yield f(0.5, call % 4 if call > 6 else 2), w
        yield len(squares)


@scenario
def lru_written_with_an_ordered_dict(compile):
    recent = OrderedDict()

    def gain(n):
        if n in recent:
            recent.move_to_end(n)
        else:
            recent[n] = 1.0 / (n + 1)
            if len(recent) > 2:
                recent.popitem(last=False)
        return recent[n]

    w = Value(1.0)
    f = compile(lambda x, n: w * x * gain(n))
    for call in range(1, 20):
        yield f(2.0, call % 3 if call > 5 else 1), w
        yield list(recent)


@scenario
def result_kept_when_the_inputs_are_the_same(compile):
    last = {"x": None, "y": None, "misses": 0}
    w = Value(1.1)

    def expensive(x):
        if last["x"] != x:
            last["x"], last["y"] = x, math.exp(x)
            last["misses"] += 1
        return w * last["y"]

    f = compile(expensive)
    for call in range(1, 20):
        yield f(0.1 * (call // 3)), w
        yield last["misses"]


@scenario
def lazily_built_table_that_is_thrown_away(compile):
    class Basis:
        table = None

        def rows(self):
            if self.table is None:
                self.table = [[math.cos(k * j) for j in range(3)] for k in range(3)]
            return self.table

    basis, w = Basis(), Value(0.5)
    f = compile(lambda xs: sum(w * x * r[1] for x, r in zip(xs, basis.rows())))
    for call in range(1, 20):
        if call == 6:
            basis.table[1][1] = 40.0
        if call == 12:
            basis.table = None
        yield f([0.1, 0.1 * call, 0.3]), w


@scenario
def lazily_built_table_in_a_mean(compile):
    tables = {}
    w = Value(1.0)

    def weight(k):
        if k not in tables:
            tables[k] = 1.0 / (k + 1)
        return tables[k]

    f = compile(lambda x: w * x * weight(2) + weight(3))
    for call in range(1, 15):
        if call == 6:
            tables[2] = 100.0
        if call == 7:
            del tables[3]
        yield f.mean([0.01 * k * call for k in range(64)]), w
        yield dict(tables)


@scenario
def compiled_pattern_in_a_helper(compile):
    number = re.compile(r"(-?\d+)")
    names = ["w1", "w-2"]
    w = Value(1.0)

    def total():
        return sum(int(number.search(name)[1]) for name in names)

    f = compile(lambda x: w * x * total())
    for call in range(1, 18):
        if call == 6:
            names[0] = "w10"
        if call == 12:
            number = re.compile(r"(\d)")
        yield f(0.2 * call), w


@scenario
def patterns_of_the_re_module_and_its_cache(compile):
    pattern = "a+"
    w = Value(3.0)
    f = compile(lambda x: w * x * len(re.findall(pattern, "aaabaabcc")))
    for call in range(1, 18):
        if call == 6:
            re.purge()
        if call == 7:
            pattern = "a"
        if call == 13:
            pattern = "[bc]"
        yield f(0.1 * call), w


@scenario
def counter_from_itertools_is_used_up(compile):
    ticks = itertools.count(1)
    w = Value(1.0)
    f = compile(lambda x: w * x * next(ticks))
    for _call in range(1, 16):
        yield f(0.5), w


@scenario
def cycle_of_rates(compile):
    rates = itertools.cycle([0.1, 0.2, 0.4])
    w = Value(1.0)

    def step(x):
        return w - next(rates) * x

    f = compile(step)
    for call in range(1, 16):
        yield f(1.0 * call), w
    yield f.map([1.0] * 9)


@scenario
def itertools_over_what_is_outside(compile):
    groups = [[1.0, 2.0], [3.0]]
    selectors = [1, 0, 1]
    w = Value(0.25)

    def total(x):
        flat = list(itertools.chain.from_iterable(groups))
        running = list(itertools.accumulate(flat, operator.mul))
        kept = itertools.compress(running, selectors)
        return w * x * sum(kept) + sum(a * b for a, b in itertools.pairwise(flat))

    f = compile(total)
    for call in range(1, 22):
        if call == 6:
            groups[0][1] = -2.0
        if call == 12:
            selectors[1] = 1
        if call == 18:
            groups.append([0.5])
        yield f(0.3 * call), w


@scenario
def islice_takewhile_and_a_bound_that_moves(compile):
    series = [0.9, 0.7, 0.5, 0.3, 0.1]
    stop = {"below": 0.4, "first": 4}
    w = Value(1.0)

    def head(x):
        kept = itertools.takewhile(lambda s: s > stop["below"], itertools.islice(series, stop["first"]))
        return w * x * sum(kept)

    f = compile(head)
    for call in range(1, 20):
        if call == 6:
            stop["below"] = 0.2
        if call == 12:
            stop["first"] = 2
        yield f(1.0 + 0.1 * call), w


@scenario
def attrgetter_and_itemgetter_of_own_objects(compile):
    class Node:
        def __init__(self, lr):
            self.opt = {"lr": lr}
            self.lr = lr

    node, w = Node(0.5), Value(1.0)
    lr, opt = operator.attrgetter("lr"), operator.itemgetter("lr")
    f = compile(lambda x: w * x * lr(node) + opt(node.opt))
    for call in range(1, 21):
        if call == 6:
            node.lr = 4.0
        if call == 12:
            node.opt["lr"] = -4.0
        if call == 18:
            lr = operator.attrgetter("opt.__len__")
            node.lr = 0.0
            lr = operator.attrgetter("lr")
        yield f.mean([0.3 * call + 0.05 * k for k in range(64)]), w


@scenario
def dotted_attrgetter_in_a_map(compile):
    class Group:
        pass

    root = Group()
    root.model = Group()
    root.model.scale = 2.0
    scale = operator.attrgetter("model.scale")
    w = Value(1.0)
    f = compile(lambda x: w * x * scale(root))
    for call in range(1, 10):
        if call == 6:
            root.model.scale = 0.1
        if call == 7:
            root.model = Group()
            root.model.scale = -3.0
        yield f.map([0.1 * k + call for k in range(9)])
        yield f.sum([0.1 * k for k in range(9)]), w


@scenario
def methodcaller_of_a_schedule(compile):
    class Warmup:
        def __init__(self):
            self.epoch = 1

        def rate(self, top):
            return min(top, 0.1 * self.epoch)

    schedule, w = Warmup(), Value(2.0)
    rate = operator.methodcaller("rate", 0.5)
    f = compile(lambda x: w * x * rate(schedule))
    for call in range(1, 24):
        if call > 5:
            schedule.epoch = call - 3
        yield f(0.1 * call), w


@scenario
def numpy_vectorize_of_a_closure(compile):
    bend = {"at": 0.0}
    kinked = np.vectorize(lambda t: t if t > bend["at"] else 0.5 * t, otypes=[float])
    knots = np.array([-1.0, 0.0, 1.0])
    w = Value(1.0)
    f = compile(lambda x: w * x * float(kinked(knots).sum()))
    for call in range(1, 18):
        if call == 6:
            bend["at"] = 2.0
        if call == 12:
            knots[0] = -10.0
        yield f(0.5 + call), w


@scenario
def compiled_helper_shared_by_two_functions(compile):
    offset = [0.0]
    w = Value(1.0)
    helper = wengert.compile(lambda x: (w * x + offset[0]) ** 2)
    f = compile(lambda x: helper(x) + 1.0)
    g = compile(lambda x: helper(x) * helper(2 * x))
    for call in range(1, 16):
        if call == 6:
            offset[0] = 1.5
        yield f(0.2 * call), w
        yield g(0.1 * call), w


@scenario
def string_template_and_percent_formats_decide(compile):
    import string

    key = string.Template("${kind}_$n")
    rates = {"warm_1": 0.1, "warm_2": 0.2, "cold_1": 7.0}
    state = {"kind": "warm", "n": 1}
    w = Value(1.0)
    f = compile(lambda x: w * x * rates[key.substitute(state)] + len("%(kind)s" % state))
    for call in range(1, 20):
        if call == 6:
            state["n"] = 2
        if call == 12:
            state.update(kind="cold", n=1)
        yield f(1.0 + call), w
