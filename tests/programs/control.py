"""Programs for how they run: branches, loops, exceptions, generators, recursion, sorting, classes, closures."""

from __future__ import annotations

import contextlib
import copy
import functools
import heapq
import itertools
import math
import operator
from abc import ABC, abstractmethod
from bisect import bisect_left, insort
from collections import defaultdict, deque
from contextlib import contextmanager

import numpy as np

from tests.programs.kit import array, choice, flag, matrix, program, real, reals, text, weights, whole, wholes
from wengert import Value, no_grad

# ------------------------------------------------------------------------------------------------ branches and loops


@program(x=real(-2.0, 2.0))
def branch_on_a_value(a, b, c):
    def value(x):
        h = a * x + b
        if h > 1:
            return h.log() + c
        elif h > 0:
            return h * c
        elif not h <= -1:
            return -h * h
        return (-h).sqrt()

    return value


@program(x=real(-2.0, 2.0))
def truth_of_values(a, b):
    def value(x):
        kept = (a * x).relu()
        other = b.relu() * (x > 0)
        return (kept and kept * b) + (other or a) + (1 if kept else 2) * a + (not other) * b

    return value


@program(start=real(0.5, 8.0))
def loop_until_small(shrink, power):
    def turns(start):
        x, n = start + 0 * shrink, 0
        while x > 0.5 and n < 30:
            x = x * (0.3 + 0.5 * shrink.sigmoid()) - 0.01 * power
            n += 1
        return x + n * power

    return turns


@program(target=real(0.5, 4.0), tolerance=choice(1e-3, 1e-8))
def newton_square_root(scale):
    def root(target, tolerance):
        x = 1.0
        for _ in range(40):
            previous = x
            x = (x + scale * target / x) / 2
            if abs((x - previous).data) < tolerance:
                break
        else:
            raise ArithmeticError("no convergence")
        return x

    return root


@program(number=whole(1, 20))
def collatz(odd, even):
    def cost(number):
        total = 0.0 * odd
        while number != 1:
            if number % 2:
                number = 3 * number + 1
                total += odd
            else:
                number //= 2
                total += 0.5 * even
        return total + even * number

    return cost


@program(xs=reals(4, -2.0, 2.0), limit=real(1.0, 4.0))
def continue_break_and_else(a, b):
    def value(xs, limit):
        total, spent = 0.0 * a, 0.0
        for i, x in enumerate(xs):
            if x < 0:
                continue
            spent += x
            if spent > limit:
                total += b * i
                break
            total += a * x**2
        else:
            total += a * b
        return total

    return value


@program(grid=matrix(3, 4, -1.0, 1.0), target=real(0.2, 0.9))
def search_in_nested_loops(a, b):
    def value(grid, target):
        for i, row in enumerate(grid):
            for j, x in enumerate(row):
                if x > target:
                    return a * x + b * (i - j)
        return a * b

    return value


@program(x=real(-2.0, 2.0), y=real(-2.0, 2.0))
def early_returns(a, b):
    def value(x, y):
        if x > 0 > y:
            return a * x * y
        if x == y:
            return b * 1.0
        quadrant = (x > 0) * 2 + (y > 0)
        if quadrant == 3:
            return (a * x + b * y).sqrt()
        return a.maximum(b) * (x - y) if quadrant else a * b

    return value


@program(code=text("M 1 2 L 3 -1 Z", "M 0 0 L 1 1 L 2 0", "M 5 5 Q"))
def interpreter_of_commands(line, close):
    def length(code):
        tokens = code.split()
        at = start = (0.0, 0.0)
        total = 0.0 * close
        while tokens:
            match tokens.pop(0):
                case "M":
                    at = start = (float(tokens.pop(0)), float(tokens.pop(0)))
                case "L":
                    to = (float(tokens.pop(0)), float(tokens.pop(0)))
                    total += line * math.dist(at, to)
                    at = to
                case "Z":
                    total += close * math.dist(at, start)
                case other:
                    total += 0.1 * len(other) * close
        return total

    return length


@program(program_=text("ab+", "ab*c-", "aab*+c/"))
def stack_machine(a, b, c):
    operations = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}

    def run(program_):
        names, stack = {"a": a, "b": b, "c": c}, []
        for symbol in program_:
            if symbol in operations:
                right, left = stack.pop(), stack.pop()
                stack.append(operations[symbol](left, right))
            else:
                stack.append(names[symbol])
        (result,) = stack
        return result

    return run


# ------------------------------------------------------------------------------------------------ exceptions


@program(x=real(-1.0, 3.0))
def try_and_except(a, b):
    def value(x):
        try:
            y = math.log(x)
        except ValueError:
            return b * x
        else:
            y = y + 1
        finally:
            x = abs(x)
        return a * y + b * math.sqrt(x)

    return value


@program(keys=wholes(2, 0, 4))
def missing_keys(default, w=weights(3)):
    def total(keys):
        table = dict(enumerate(w))
        result = 0.0
        for key in keys:
            try:
                result += table[key]
            except KeyError as problem:
                result += default * problem.args[0]
        return result

    return total


@program(x=real(-3.0, 3.0), engine="a number that is out of range is written into a message")
def errors_of_ones_own(a, b):
    class OutOfRange(Exception):
        def __init__(self, by):
            super().__init__(f"out by {by:.2f}")
            self.by = by

    def checked(x):
        if abs(x) > 2:
            raise OutOfRange(abs(x) - 2)
        return a * x

    def value(x):
        try:
            return checked(x) + b
        except OutOfRange as problem:
            return a * 2 - b * problem.by

    return value


@program(x=real(-0.1, 3.85))
def exceptions_that_reach_the_caller(a):
    def value(x):
        if x > 3.8:
            raise ValueError(f"{x:.3f} is beyond the table")
        return a * math.sqrt(x) if x > -0.05 else a * (1 / (x - x))

    return value


@program(x=real(0.1, 2.0))
def suppressed_and_asserted(a, b):
    def value(x):
        y = a * x
        with contextlib.suppress(ZeroDivisionError, ValueError):
            y = y + b * math.acos(x)
        assert y.data > 0, "positive"
        return y.log()

    return value


# ------------------------------------------------------------------------------------------------ comprehensions


@program(xs=reals(3, -1.0, 1.0))
def comprehensions(a, b):
    def value(xs):
        squares = {i: a * x * x for i, x in enumerate(xs) if x > -0.5}
        pairs = [(i, j) for i in squares for j in squares if i < j]
        cross = sum(squares[i] * squares[j] for i, j in pairs)
        signs = {x > 0 for x in xs}
        return cross + b * len(pairs) + a * len(signs)

    return value


@program(x=real(0.1, 0.9), n=whole(1, 6))
def generator_of_terms(a, b):
    def powers(x):
        term = a * 1.0
        while True:
            yield term
            term = term * x * b

    def value(x, n):
        return sum(itertools.islice(powers(x), n)) + next(powers(x)) * 0.5

    return value


@program(xs=reals(6, -2.0, 2.0))
def generator_that_is_sent_to(gain, leak):
    def filter_():
        state = 0.0
        x = yield
        while True:
            state = leak.sigmoid() * state + gain * x
            x = yield state

    def value(xs):
        process = filter_()
        next(process)
        outputs = [process.send(x) for x in xs]
        process.close()
        return sum(o * o for o in outputs)

    return value


@program(tree=choice([1, [2, 3]], [[1], 2], [[[4]], [1, 1]]))
def recursive_generator(a, b):
    def leaves(tree, depth=0):
        for item in tree:
            if isinstance(item, list):
                yield from leaves(item, depth + 1)
            else:
                yield item * a * b**depth

    def value(tree):
        return sum(leaves(tree))

    return value


# ------------------------------------------------------------------------------------------------ recursion, memory


@program(x=real(-1.0, 1.0), n=whole(0, 7))
def recursion(a, b):
    def hermite(n, y):
        if n == 0:
            return Value(1.0)
        if n == 1:
            return 2 * y
        return 2 * y * hermite(n - 1, y) - 2 * (n - 1) * hermite(n - 2, y)

    def value(x, n):
        return hermite(n, a * x) + b

    return value


@program(p=whole(1, 4), q=whole(1, 4))
def memo_inside_the_call(a, b):
    def value(p, q):
        known = {}

        def ackermann_like(i, j):
            if (i, j) not in known:
                if i == 0 or j == 0:
                    known[i, j] = a * (i + j) + b
                else:
                    known[i, j] = 0.5 * (ackermann_like(i - 1, j) + b * ackermann_like(i, j - 1)).tanh()
            return known[i, j]

        return ackermann_like(p, q)

    return value


@program(n=whole(1, 5), x=real(-1.0, 1.0))
def mutual_recursion(a, b):
    def even(n, y):
        return y * a if n == 0 else odd(n - 1, y.sin())

    def odd(n, y):
        return y * b if n == 0 else even(n - 1, y.cos())

    def value(n, x):
        return even(n, a * x)

    return value


@program(low=real(-2.0, 0.0), high=real(0.1, 2.0))
def adaptive_quadrature(a, b):
    def f(x):
        return (a * x * x).sin() + b * x

    def value(low, high):
        def integrate(left, right, depth):
            middle = (left + right) / 2
            rough = (f(left) + f(right)) * (right - left) / 2
            fine = (f(left) + 2 * f(middle) + f(right)) * (right - left) / 4
            if depth == 0 or abs(fine.data - rough.data) < 0.02:
                return fine + (fine - rough) / 3
            return integrate(left, middle, depth - 1) + integrate(middle, right, depth - 1)

        return integrate(low, high, 2)

    return value


@program(discs=whole(1, 4))
def towers_of_hanoi(near, far):
    def cost(discs):
        pegs = {"a": list(range(discs, 0, -1)), "b": [], "c": []}
        total = [0.0]

        def move(n, source, target, spare):
            if n == 0:
                return
            move(n - 1, source, spare, target)
            pegs[target].append(pegs[source].pop())
            total[0] += (far if {source, target} == {"a", "c"} else near) * pegs[target][-1]
            move(n - 1, spare, target, source)

        move(discs, "a", "c", "b")
        return total[0]

    return cost


# ------------------------------------------------------------------------------------------------ order


@program(xs=reals(4, -1.0, 1.0))
def sorted_values(scale, w=weights(4)):
    def weighted(xs):
        scored = sorted(((scale * x).sin() for x in xs), reverse=True)
        return sum(a * b for a, b in zip(w, scored))

    return weighted


@program(xs=reals(4, -1.0, 1.0))
def bubble_sort_by_hand(a, b):
    def value(xs):
        ys = [a * x + b * x * x for x in xs]
        swaps = 0
        for i in range(len(ys)):
            for j in range(len(ys) - 1 - i):
                if ys[j] > ys[j + 1]:
                    ys[j], ys[j + 1] = ys[j + 1], ys[j]
                    swaps += 1
        return sum((i + 1) * y for i, y in enumerate(ys)) + 0.1 * swaps * a

    return value


@program(xs=reals(4, -1.0, 1.0))
def maximum_and_argmax_by_hand(a, b):
    def value(xs):
        best, where = None, -1
        for i, x in enumerate(xs):
            y = a * x - b * x**3
            if best is None or y > best:
                best, where = y, i
        runner_up = max((a * x - b * x**3 for i, x in enumerate(xs) if i != where), key=lambda v: v.data)
        return best - 0.5 * runner_up + 0.1 * where * b

    return value


@program(x=real(-0.5, 3.5))
def interpolation_with_bisect(ys=weights(4)):
    xs = [0.0, 1.0, 2.0, 3.0]

    def value(x):
        i = min(max(bisect_left(xs, x), 1), len(xs) - 1)
        t = (x - xs[i - 1]) / (xs[i] - xs[i - 1])
        return ys[i - 1] * (1 - t) + ys[i] * t

    return value


@program(xs=reals(4, -1.0, 1.0))
def running_median(scale, weight):
    def value(xs):
        seen, total = [], 0.0
        for x in xs:
            insort(seen, x)
            total += weight * (scale * seen[len(seen) // 2]).tanh()
        return total

    return value


@program(xs=reals(3, 0.0, 2.0))
def heaps_of_numbers(a, b):
    def value(xs, k=2):
        heap = list(xs)
        heapq.heapify(heap)
        total = 0.0
        for turn in range(k):
            smallest = heapq.heappop(heap)
            second = heapq.heappushpop(heap, smallest + 0.5)
            total += a * smallest + b * second * (turn + 1)
        return total + b * sum(heapq.nlargest(2, heap))

    return value


# ------------------------------------------------------------------------------------------------ functional


@program(xs=reals(5, -1.0, 1.0))
def itertools_over_values(a, b):
    def value(xs):
        scaled = [a * x for x in xs]
        partial_sums = list(itertools.accumulate(scaled))
        products = itertools.starmap(operator.mul, zip(scaled, scaled[1:]))
        chained = itertools.chain(partial_sums, products, itertools.repeat(b, 2))
        triangle = sum(u * v for u, v in itertools.combinations(scaled[:3], 2))
        return sum(chained) + triangle + sum(itertools.takewhile(lambda v: v < 0.5, scaled))

    return value


@program(coefficients=reals(4, -1.0, 1.0), x=real(-1.0, 1.0))
def reduce_and_partial(w, b):
    def horner(x, total, c):
        return total * x + c

    def value(coefficients, x):
        step = functools.partial(horner, w * x)
        return functools.reduce(step, coefficients, b)

    return value


@program(x=real(-1.0, 1.0), depth=whole(1, 4))
def composed_functions(a, b):
    def compose(*functions):
        return functools.reduce(lambda f, g: lambda x: g(f(x)), functions)

    def value(x, depth):
        layers = [lambda v, k=k: (a * v + b * k).tanh() for k in range(depth)]
        return compose(*layers)(x) * b

    return value


@program(xs=reals(4, -1.0, 1.0))
def map_filter_and_lambdas(a, b):
    def value(xs):
        positive = list(filter(lambda x: x > 0, xs))
        mapped = map(lambda x, y: a * x - b * y, xs, reversed(xs))
        return sum(mapped, b) + math.prod(positive) * a + sum(map(abs, xs)) * b

    return value


@program(x=real(-1.0, 1.0))
def closures_with_state_of_the_call(a, b):
    def value(x):
        count = 0

        def squash(v):
            nonlocal count
            count += 1
            return (v * a + count * b).tanh()

        y = squash(x)
        y = squash(y) + squash(y)
        return y / count

    return value


@program(x=real(-1.0, 1.0), scale=real(0.5, 2.0))
def wrapped_helpers(a, b):
    def scaled(factor):
        def wrapper(f):
            @functools.wraps(f)
            def inner(*args, **kwargs):
                return factor * f(*args, **kwargs)

            return inner

        return wrapper

    @scaled(2.0)
    def inner_product(u, v, *, offset=0.0):
        return u * v + offset

    def value(x, scale):
        damped = scaled(scale)(inner_product)
        return damped(a, x, offset=b) + inner_product(b, x)

    return value


@program(x=real(-1.0, 1.0), training=flag())
def contexts(a, b):
    @contextmanager
    def shifted(terms, by):
        terms.append(by)
        yield terms[-1] * 2
        terms.pop()

    def value(x, training):
        terms = [a * x]
        with shifted(terms, b) as double:
            total = sum(terms) + double
        with no_grad():
            frozen = a * b
        return total * len(terms) + (0.0 if training else frozen.data)

    return value


# ------------------------------------------------------------------------------------------------ classes


class Dual:
    """A number with its derivative."""

    def __init__(self, value, slope=0.0):
        self.value, self.slope = value, slope

    def __add__(self, other):
        other = other if isinstance(other, Dual) else Dual(other)
        return Dual(self.value + other.value, self.slope + other.slope)

    __radd__ = __add__

    def __mul__(self, other):
        other = other if isinstance(other, Dual) else Dual(other)
        return Dual(self.value * other.value, self.slope * other.value + self.value * other.slope)

    __rmul__ = __mul__

    def __pow__(self, n):
        result = Dual(1.0)
        for _ in range(n):
            result = result * self
        return result


@program(x=real(-1.0, 1.0), n=whole(1, 4))
def dual_numbers(a, b):
    def slope(x, n):
        y = a * Dual(x, 1.0) ** n + b * Dual(x, 1.0) + 3
        return y.slope + y.value

    return slope


class Vector:
    """A vector with the operators of mathematics."""

    def __init__(self, *items):
        self.items = list(items)

    def __iter__(self):
        return iter(self.items)

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return Vector(*self.items[i]) if isinstance(i, slice) else self.items[i]

    def __sub__(self, other):
        return Vector(*(a - b for a, b in zip(self, other)))

    def __matmul__(self, other):
        return sum(a * b for a, b in zip(self, other))

    def __rmul__(self, scalar):
        return Vector(*(scalar * a for a in self))

    def __abs__(self):
        return (self @ self + 1e-12) ** 0.5

    def __eq__(self, other):
        return list(self) == list(other)

    __hash__ = None


@program(p=reals(3), q=reals(3))
def vectors_with_operators(a, b):
    def value(p, q):
        u, v = a * Vector(*p), b * Vector(*q)
        along = (u @ v) / abs(v)
        return abs(u - v) + along * len(u[:2]) + (1.0 if Vector(*p) == Vector(*q) else 0.0)

    return value


class Shape(ABC):
    """What has an area."""

    def __init__(self, size):
        self.size = size

    @abstractmethod
    def area(self): ...

    @property
    def cost(self):
        return self.area() * self.price

    price = 2.0


class Square(Shape):
    def area(self):
        return self.size**2


class Disc(Shape):
    price = 0.5

    def area(self):
        return math.pi * self.size**2 / 4


class Frame(Square):
    def area(self):
        return super().area() - (self.size * 0.5) ** 2


@program(kinds=wholes(3, 0, 2), sizes=reals(3, 0.5, 2.0))
def classes_that_inherit(scale, bias):
    def total(kinds, sizes):
        shapes = [(Square, Disc, Frame)[k](scale * s) for k, s in zip(kinds, sizes)]
        assert all(isinstance(shape, Shape) for shape in shapes)
        squares = sum(isinstance(shape, Square) for shape in shapes)
        return sum(shape.cost for shape in shapes) + bias * squares

    return total


class Stack:
    """Made and used within one call."""

    def __init__(self):
        self._items = []

    def __enter__(self):
        return self

    def __exit__(self, *problem):
        self._items.clear()

    def __contains__(self, item):
        return any(item is other for other in self._items)

    def __bool__(self):
        return bool(self._items)

    def push(self, item):
        self._items.append(item)
        return self

    def pop(self):
        return self._items.pop()


@program(xs=reals(4, -1.0, 1.0))
def object_protocols(a, b):
    def value(xs):
        total = 0.0
        with Stack() as stack:
            for x in xs:
                stack.push(a * x)
            stack.push(b)
            if b in stack and a not in stack:
                total = total + b
            while stack:
                total = total * 0.5 + stack.pop()
        return total if not stack else total + 1

    return value


@program(xs=reals(3, -1.0, 1.0))
def state_machine_object(gain, threshold):
    class Trigger:
        def __init__(self):
            self.state, self.level = self.idle, 0.0

        def idle(self, x):
            self.level = 0.5 * self.level
            return self.armed if x > 0 else self.idle

        def armed(self, x):
            self.level = self.level + gain * x
            return self.fired if self.level > threshold else self.armed

        def fired(self, x):
            self.level = self.level - threshold
            return self.idle

    def value(xs):
        trigger = Trigger()
        for x in xs * 2:
            trigger.state = trigger.state(x)
        return trigger.level + 0.1 * gain * len(trigger.state.__name__)

    return value


@program(x=reals(3, -1.0, 1.0))
def copies_of_lists_and_objects(a, b):
    def value(x):
        state = {"w": [a, b], "x": x}
        shallow = copy.copy(state)
        shallow["w"] = [b, a]
        first, second = state["w"], shallow["w"]
        y = copy.deepcopy(x)
        y[0] = 0.5
        return sum(p * u for p, u in zip(first, x)) - sum(p * u for p, u in zip(second, y))

    return value


@program(x=array(4, lo=-1.0, hi=1.0))
def vectorised_helpers(a, b):
    activate = np.vectorize(lambda v: (a * v).tanh() + b, otypes=[object])

    def value(x):
        y = activate(x)
        return y.sum() + np.dot(y, x) + y[np.argmin(x)]

    return value


@program(edges=wholes(8, 0, 4), engine="each graph takes a path of its own")
def union_find(join, cycle):
    def cost(edges):
        parent = list(range(5))

        def find(i):
            while parent[i] != i:
                parent[i] = parent[parent[i]]
                i = parent[i]
            return i

        total = 0.0 * join
        for a, b in zip(edges[::2], edges[1::2]):
            ra, rb = find(a), find(b)
            if ra == rb:
                total += cycle
            else:
                parent[ra] = rb
                total += join * (1 + abs(a - b))
        return total

    return cost


@program(weights_=reals(6, 0.1, 2.0), threshold=real(0.2, 1.5))
def propagation_through_a_queue(decay, boost):
    links = defaultdict(list, {0: [1, 2], 1: [3], 2: [3, 4], 3: [5], 4: [5]})

    def activation(weights_, threshold):
        level = {0: boost}
        queue = deque([0])
        while queue:
            node = queue.popleft()
            for to in links[node]:
                if weights_[to] < threshold and node:
                    continue
                level[to] = level.get(to, 0.0) + level[node] * weights_[to] * decay.sigmoid()
                queue.append(to)
        return sum(level.values())

    return activation


@program(x=real(-1.0, 1.0), count=whole(2, 5))
def fixed_point_with_a_helper_function(a, b):
    def anderson(f, x, turns):
        previous = f(x)
        for _ in range(turns):
            current = f(previous)
            change = current - previous
            if abs(change) < 1e-9:
                return current
            previous = previous + 0.7 * change
        return previous

    def value(x, count):
        return anderson(lambda y: (0.5 * a * y + b * x).cos(), Value(x), count)

    return value


@program(x=real(0.2, 2.0), method=text("euler", "heun", "midpoint"))
def method_chosen_by_name(rate, capacity):
    class Solver:
        @staticmethod
        def slope(y):
            return rate * y * (1 - y / (1 + capacity))

        def euler(self, y, h):
            return y + h * self.slope(y)

        def heun(self, y, h):
            k = self.slope(y)
            return y + h / 2 * (k + self.slope(y + h * k))

        def midpoint(self, y, h):
            return y + h * self.slope(y + h / 2 * self.slope(y))

        @classmethod
        def run(cls, name, y):
            solver = cls()
            for _ in range(5):
                y = getattr(solver, name)(y, 0.1)
            return y

    def value(x, method):
        return Solver.run(method, x)

    return value
