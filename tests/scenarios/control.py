"""Scenarios of what runs inside: exceptions, matches, generators, closures, recursion, odd arguments, text, eval."""

from __future__ import annotations

import contextlib
import math
import operator
from dataclasses import dataclass

import wengert
from tests.scenarios.kit import attempt, scenario
from wengert import Value


@scenario
def exception_caught_inside_when_a_limit_moves(compile):
    limit, w = [10.0], Value(1.0)

    def checked(v):
        if v.data > limit[0]:
            raise OverflowError("too large")
        return v

    def value(x):
        try:
            return checked(w * x)
        except OverflowError:
            return w * 0.5

    f = compile(value)
    for call in range(1, 20):
        if call == 6:
            limit[0] = 0.1
        if call == 13:
            limit[0] = 1.0
        yield f.mean([0.1 * call + 0.02 * k for k in range(64)]), w


@scenario
def exception_that_comes_out_late(compile):
    forbidden, w = set(), Value(2.0)

    def value(x, k):
        if k in forbidden:
            raise KeyError(f"{k} is taken out")
        return w * x

    f = compile(value)
    for call in range(1, 18):
        if call == 6:
            forbidden.add(3)
        if call == 13:
            forbidden.clear()
        yield attempt(f, 0.1 * call, 3), w


@scenario
def own_exception_with_fields_from_a_helper(compile):
    class Infeasible(ArithmeticError):
        def __init__(self, slack):
            super().__init__(f"slack {slack:.2f}")
            self.slack = slack

    budget, w = {"left": 5.0}, Value(1.0)

    def spend(x):
        if x > budget["left"]:
            raise Infeasible(x - budget["left"])
        return w * x

    f = compile(spend)
    for call in range(1, 20):
        if call == 6:
            budget["left"] = 1.0
        yield attempt(f, 0.3 * call), w


@scenario
def exception_of_the_first_failing_example_of_a_batch(compile):
    floor, w = [-1.0], Value(1.0)

    def value(x):
        if x < floor[0]:
            raise ValueError(f"{x} is below {floor[0]}")
        return w * x

    f = compile(value)
    for call in range(1, 15):
        if call == 6:
            floor[0] = 0.35
        if call == 12:
            floor[0] = -5.0
        yield attempt(f.map, [0.9, 0.5, 0.3, 0.1, 0.8, 0.05, 0.7, 0.6, 0.4])


@scenario
def assertion_on_the_settings(compile):
    settings, w = {"scale": 1.0}, Value(1.0)

    def value(x):
        assert settings["scale"] > 0, "scale must be positive"
        return w * x * settings["scale"]

    f = compile(value)
    for call in range(1, 18):
        if call == 6:
            settings["scale"] = -1.0
        if call == 12:
            settings["scale"] = 0.5
        yield attempt(f, 0.1 * call), w


@scenario
def finally_and_else_of_a_try(compile):
    table, w = {"a": 1.0}, Value(1.0)

    def value(x):
        parts = []
        try:
            parts.append(table["b"] * x)
        except KeyError:
            parts.append(-x)
        else:
            parts.append(100.0)
        finally:
            parts.append(w)
        return sum(parts)

    f = compile(value)
    for call in range(1, 20):
        if call == 6:
            table["b"] = 2.0
        if call == 13:
            del table["b"]
        yield f(0.2 * call), w
        yield f.map([0.2 * call + 0.25 * k for k in range(9)])


@scenario
def return_in_finally_and_suppress(compile):
    names, w = ["tanh"], Value(0.5)

    def value(x):
        y = w * x
        with contextlib.suppress(AttributeError):
            y = getattr(y, names[0])()
        return y

    f = compile(value)
    for call in range(1, 18):
        if call == 6:
            names[0] = "no_such_method"
        if call == 12:
            names[0] = "exp"
        yield f(0.3 * call), w


@scenario
def exception_group_counted_with_except_star(compile):
    problems, w = [], Value(1.0)

    def value(x):
        y = w * x
        try:
            if problems:
                raise ExceptionGroup("checks", [kind("bad") for kind in problems])
        except* ValueError as group:
            y = y + len(group.exceptions)
        except* KeyError:
            y = -y
        return y

    f = compile(value)
    for call in range(1, 20):
        if call == 6:
            problems.extend([ValueError, ValueError])
        if call == 12:
            problems[:] = [KeyError]
        yield f(0.1 * call), w


@scenario
def match_on_a_configuration(compile):
    @dataclass
    class Clip:
        low: float
        high: float

    rule, w = {"now": ("scale", 2.0)}, Value(1.5)

    def value(x):
        y = w * x
        match rule["now"]:
            case ("scale", factor):
                return y * factor
            case {"kind": "power", "n": int(n)} if n > 1:
                return y**n
            case Clip(low=low, high=high):
                return wengert.clip(y, low, high)
            case None | "off":
                return y
            case [*steps]:
                return y + sum(steps)

    f = compile(value)
    rules = {6: ("scale", -1.0), 12: {"kind": "power", "n": 3}, 14: Clip(0.0, 1.0), 19: [1.0, 2.0, 3.0], 24: "off"}
    for call in range(1, 29):
        rule["now"] = rules.get(call, rule["now"])
        yield f.mean([0.1 * call + 0.02 * k for k in range(64)]), w


@scenario
def match_on_a_number_of_the_arguments(compile):
    w = Value(1.0)

    def value(x, n):
        match n:
            case 0:
                return w
            case 1 | 2:
                return w * x
            case int(k) if k % 2:
                return w * x**3
            case _:
                return w * math.cos(x)

    f = compile(value)
    for call in range(1, 22):
        yield f(0.2 * call, 1 if call < 6 else call % 5), w


@scenario
def walrus_in_a_loop_until_a_tolerance(compile):
    tolerance, w = [0.5], Value(1.0)

    def value(x):
        y, steps = w * x, 0
        while (gap := abs(y.data - 1.0)) > tolerance[0] and steps < 10:
            y = y - 0.5 * (y - 1.0)
            steps += 1
        return y + gap + steps

    f = compile(value)
    for call in range(1, 16):
        if call == 6:
            tolerance[0] = 0.01
        if call == 12:
            tolerance[0] = 10.0
        yield f(0.5 * call), w


@scenario
def generator_made_and_used_up_inside(compile):
    weights, w = [0.5, 0.25, 0.125], Value(2.0)

    def terms(x):
        for weight in weights:
            received = yield weight * x
            if received:
                return

    f = compile(lambda x: w * sum(terms(x)))
    for call in range(1, 16):
        if call == 6:
            weights[0] = -1.0
        if call == 12:
            weights.append(10.0)
        yield f(0.1 * call), w
    yield f.map([0.1 * k for k in range(9)])


@scenario
def generator_with_send_and_yield_from(compile):
    decay, w = {"rate": 0.5}, Value(1.0)

    def smoother():
        state = 0.0
        while True:
            state = decay["rate"] * state + (yield state)

    def smoothed(xs):
        g = smoother()
        next(g)
        yield from (g.send(x) for x in xs)

    f = compile(lambda xs: w * list(smoothed(xs))[-1])
    for call in range(1, 16):
        if call == 6:
            decay["rate"] = 0.9
        yield f([1.0, 0.1 * call, -1.0]), w


@scenario
def closures_made_in_a_comprehension(compile):
    shifts, w = [0.0, 1.0, 2.0], Value(0.5)

    def value(x):
        late = [lambda t: t * k for k in range(3)]
        early = [lambda t, s=s: t + s for s in shifts]
        return sum(g(w * x) for g in late) + sum(g(x) for g in early)

    f = compile(value)
    for call in range(1, 16):
        if call == 6:
            shifts[2] = -7.0
        yield f.mean([0.1 * call + 0.01 * k for k in range(64)]), w


@scenario
def recursion_to_a_depth_of_the_settings(compile):
    depth, w = [3], Value(0.5)

    def nested(x, n):
        return x if n == 0 else (w * nested(x, n - 1)).tanh() + x

    f = compile(lambda x: nested(x, depth[0]))
    for call in range(1, 18):
        if call == 6:
            depth[0] = 6
        if call == 12:
            depth[0] = 0
        yield f(0.2 * call), w
        yield f.map([0.2 * call + 0.1 * k for k in range(9)])


@scenario
def nonlocal_counter_inside_a_call(compile):
    step, w = [1], Value(1.0)

    def value(x):
        count = 0

        def tick(t):
            nonlocal count
            count += step[0]
            return t * count

        return tick(w * x) + tick(x) + tick(1.0)

    f = compile(value)
    for call in range(1, 16):
        if call == 6:
            step[0] = 3
        yield f(0.1 * call), w


@scenario
def nonlocal_counter_that_outlives_the_call(compile):
    count, w = 0, Value(1.0)

    def value(x):
        nonlocal count
        count += 1
        return w * x / count

    f = compile(value)
    for _ in range(1, 16):
        yield f(1.0), w
        yield count


@scenario
def default_list_that_grows(compile):
    w = Value(1.0)

    def value(x, seen=[]):
        seen.append(1.0)
        return w * x * len(seen)

    f = compile(value)
    for call in range(1, 16):
        yield f(0.5), w
        yield value.__defaults__
    yield f.map([0.1 * k for k in range(9)])


@scenario
def star_arguments_in_helpers(compile):
    extra, named, w = [1.0], {"scale": 2.0}, Value(0.5)

    def combine(first, *others, scale=1.0, **rest):
        return (first + sum(others)) * scale + sum(rest.values())

    f = compile(lambda x: combine(w * x, *extra, **named))
    for call in range(1, 22):
        if call == 6:
            extra.append(5.0)
        if call == 12:
            named["scale"] = -1.0
        if call == 18:
            named["bonus"] = 100.0
        yield f(0.1 * call), w
        yield f.map([0.1 * call + 0.25 * k for k in range(9)])


@scenario
def unpacking_with_a_star_and_swaps(compile):
    rows, w = [[1.0, 2.0, 3.0], [4.0, 5.0]], Value(1.0)

    def value(x):
        (first, *middle), second = rows
        (*head, last) = second
        first, last = last, first
        return w * x * first + last + sum(middle) - sum(head)

    f = compile(value)
    for call in range(1, 18):
        if call == 6:
            rows[0][0] = 10.0
        if call == 12:
            rows[1] = [0.5, 0.25, 0.125]
        yield f(0.3 * call), w


@scenario
def formatted_number_as_a_key(compile):
    table, w = {"0.5": 1.0, "1.0": -1.0}, Value(1.0)
    width = [1]
    f = compile(lambda x: w * table.get(f"{x:.{width[0]}f}", 0.25))
    for call in range(1, 20):
        if call == 6:
            width[0] = 2
        if call == 12:
            table["0.50"] = 8.0
        yield f((0.5, 1.0, 0.54)[call % 3]), w


@scenario
def eval_of_a_formula_in_the_settings(compile):
    settings, w = {"formula": "w * x"}, Value(1.5)
    f = compile(lambda x: eval(settings["formula"], {"x": x, "w": w, "sin": wengert.sin}))
    for call in range(1, 20):
        if call == 6:
            settings["formula"] = "w + x * x"
        if call == 12:
            settings["formula"] = "sin(w) * x"
        yield f(0.1 * call), w


@scenario
def compiled_code_object_that_is_evaluated(compile):
    environment, w = {"k": 2.0}, Value(0.5)
    code = __builtins__["compile"]("k * t + 1", "<formula>", "eval") if isinstance(__builtins__, dict) else None
    code = code or __builtins__.compile("k * t + 1", "<formula>", "eval")
    f = compile(lambda x: eval(code, environment, {"t": w * x}))
    for call in range(1, 16):
        if call == 6:
            environment["k"] = -3.0
        yield f(0.2 * call), w


@scenario
def sorted_by_a_key_that_changes(compile):
    items, w = [(1.0, 3.0), (2.0, 1.0), (3.0, 2.0)], Value(1.0)
    by = {"key": operator.itemgetter(0), "reverse": False}
    f = compile(lambda x: w * x * sorted(items, key=by["key"], reverse=by["reverse"])[0][1])
    for call in range(1, 22):
        if call == 6:
            by["key"] = operator.itemgetter(1)
        if call == 12:
            by["reverse"] = True
        if call == 18:
            items[0] = (0.0, 50.0)
        yield f(0.1 * call), w
        yield f.map([0.1 * call + 0.25 * k for k in range(9)])


@scenario
def comparison_chain_with_bounds_outside(compile):
    low, high, w = 0.0, 1.0, Value(1.0)
    f = compile(lambda x: w * x if low <= x < high else w - x)
    for call in range(1, 20):
        if call == 6:
            high = 0.5
        if call == 12:
            low, high = 1.0, 2.0
        yield f.mean([0.1 * call + 0.02 * k for k in range(64)]), w


@scenario
def for_else_and_early_return_over_rules(compile):
    rules, w = [(0.5, 2.0), (1.0, 3.0)], Value(1.0)

    def value(x):
        for bound, gain in rules:
            if x < bound:
                return gain * w * x
        else:
            return w + x

    f = compile(value)
    for call in range(1, 18):
        if call == 6:
            rules.insert(0, (0.7, -1.0))
        if call == 12:
            rules.pop()
        yield f(0.1 * call), w
        yield f.map([0.17 * k for k in range(9)])


@scenario
def type_of_the_arguments_decides(compile):
    w = Value(1.0)

    def value(x):
        if isinstance(x, bool):
            return w * 100.0 if x else w
        if isinstance(x, int):
            return w * x
        if isinstance(x, str):
            return w * len(x)
        return w + x

    f = compile(value)
    for call in range(1, 24):
        yield f(0.5 * call if call < 6 else (True, call, "word", 0.25, False)[call % 5]), w


@scenario
def booleans_and_integers_stay_what_they_are(compile):
    limit, w = [1.0], Value(0.7)
    above = compile(lambda x: x * w.data > limit[0])
    steps = compile(lambda x: int(x // 0.5) + 1)
    both = compile(lambda x: (x > 0.5 and x < limit[0], round(x)))
    for call in range(1, 20):
        if call == 6:
            limit[0] = 0.2
        if call == 12:
            w.data = 0.1
        yield above(0.2 * call)
        yield steps(0.3 * call)
        yield (attempt(both, 0.1 * call),)


@scenario
def result_is_a_dict_a_tuple_or_none(compile):
    kind, w = ["dict"], Value(1.0)

    def value(x):
        if kind[0] == "dict":
            return {"loss": w * x, "n": 1}
        if kind[0] == "tuple":
            return w * x, (w + x, 2.0)
        if kind[0] == "none":
            return None
        return [w * x, x]

    f = compile(value)
    for call in range(1, 26):
        kind[0] = "dict" if call < 6 else "tuple" if call < 12 else "none" if call < 14 else "list"
        yield (f(0.2 * call),)
