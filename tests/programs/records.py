"""Programs over tables and records: dicts, data classes, named tuples, rows, groups, joins, nested settings."""

from __future__ import annotations

import csv
import io
import json
import operator
from collections import ChainMap, Counter, OrderedDict, defaultdict, deque, namedtuple
from dataclasses import asdict, astuple, dataclass, field, replace
from itertools import groupby
from types import MappingProxyType, SimpleNamespace
from typing import NamedTuple, TypedDict

import numpy as np

import wengert
from tests.programs.kit import (
    array,
    built,
    choice,
    flag,
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
from wengert import Value


@program(house=record(area=real(40.0, 200.0), rooms=whole(1, 6), garden=flag()))
def house_price(per_meter, per_room, garden_bonus):
    def price(house):
        total = per_meter * house["area"] + 10 * per_room * house["rooms"]
        if house["garden"]:
            total = total * (1 + 0.1 * garden_bonus)
        return total

    return price


@program(patient=record(age=real(20.0, 90.0), pressure=pair(real(90.0, 180.0), real(60.0, 110.0)), smoker=flag()))
def nested_patient_record(age_effect, pressure_effect, smoking):
    def risk(patient):
        systolic, diastolic = patient["pressure"]
        score = age_effect * (patient["age"] - 50) / 10 + pressure_effect * (systolic - diastolic) / 40
        score += smoking if patient["smoker"] else 0.0
        return score.sigmoid()

    return risk


@program(
    row=record(color=text("red", "green", "blue"), size=text("S", "M", "L"), amount=whole(1, 5)), modes="call values"
)
def one_hot_columns(w_color=weights(3), w_size=weights(3)):
    colors, sizes = ["red", "green", "blue"], ["S", "M", "L"]

    def demand(row):
        x = [1.0 if row["color"] == c else 0.0 for c in colors] + [float(row["size"] == s) for s in sizes]
        score = sum(w * v for w, v in zip([*w_color, *w_size], x))
        return row["amount"] * score.exp()

    return demand


class Point(NamedTuple):
    x: float
    y: float

    def minus(self, other):
        return Point(self.x - other.x, self.y - other.y)

    @property
    def norm(self):
        return wengert.hypot(self.x, self.y)


@program(a=pair(real(-2.0, 2.0), real(-2.0, 2.0)), b=pair(real(-2.0, 2.0), real(-2.0, 2.0)))
def named_points(scale, turn):
    def distance(a, b):
        p, q = Point(*a), Point(*b)._replace(y=b[1] + 0.1)
        moved = Point(scale * p.x - turn * p.y, turn * p.x + scale * p.y)
        return moved.minus(q).norm

    return distance


@program(point=built(lambda draw: Point(draw.uniform(-2, 2), draw.uniform(-2, 2))), shift=real(-1.0, 1.0))
def named_point_as_argument(stretch, lean):
    def norm(point, shift):
        moved = point._replace(x=point.x + shift)
        return (stretch * moved.x**2 + lean * moved.y**2 + 0.1 * len(moved)).sqrt()

    return norm


@dataclass
class Particle:
    position: float
    velocity: float
    mass: float = 1.0
    history: list = field(default_factory=list)

    def step(self, force, dt):
        self.velocity = self.velocity + force / self.mass * dt
        self.position = self.position + self.velocity * dt
        self.history.append(self.position)


@program(start=real(-1.0, 1.0), speed=real(-1.0, 1.0), steps=whole(1, 6))
def particle_data_class(stiffness, mass):
    def mean_position(start, speed, steps):
        particle = Particle(start, speed, mass=mass)
        for _ in range(steps):
            particle.step(-stiffness * particle.position, 0.1)
        return sum(particle.history) / len(particle.history)

    return mean_position


@dataclass(frozen=True)
class Offer:
    price: float
    quality: float
    days: int

    def utility(self, w_price, w_quality):
        return -w_price * self.price + w_quality * self.quality - 0.1 * self.days


@program(prices=reals(3, 1.0, 5.0), qualities=reals(3, 0.0, 4.0), days=wholes(3, 1, 7))
def choice_among_offers(w_price, w_quality):
    def log_share_of_the_first(prices, qualities, days):
        offers = [Offer(*row) for row in zip(prices, qualities, days)]
        rushed = [replace(offer, days=min(offer.days, 3)) for offer in offers]
        return wengert.log_softmax([offer.utility(w_price, w_quality) for offer in rushed])[0]

    return log_share_of_the_first


@program(offer=built(lambda draw: Offer(draw.uniform(1, 5), draw.uniform(0, 4), draw.randint(1, 7))))
def offer_as_argument(w_price, w_quality):
    def value(offer):
        assert astuple(offer)[2] == asdict(offer)["days"]
        return offer.utility(w_price, w_quality).tanh()

    return value


@program(regions=wholes(3, 0, 2), sales=reals(3, 0.0, 10.0))
def group_and_aggregate(bonus, spread):
    names = ["north", "south", "west"]

    def score(regions, sales):
        by_region = defaultdict(list)
        for region, amount in zip(regions, sales):
            by_region[names[region]].append(amount)
        total = 0.0 * bonus
        for name, amounts in sorted(by_region.items()):
            mean = sum(amounts) / len(amounts)
            total += bonus * mean + spread * (max(amounts) - min(amounts)) * len(name) / 5
        return total

    return score


@program(customers=wholes(2, 0, 3), amounts=reals(2, 1.0, 50.0))
def join_of_two_tables(loyalty, discount):
    table = {
        0: {"tier": "gold", "since": 2015},
        1: {"tier": "silver", "since": 2019},
        3: {"tier": "gold", "since": 2021},
    }

    def revenue(customers, amounts):
        total = 0.0
        for customer, amount in zip(customers, amounts):
            found = table.get(customer)
            if found is None:
                total += amount
                continue
            rate = discount if found["tier"] == "gold" else 0.5 * discount
            total += amount * (1 - 0.1 * rate) + loyalty * (2024 - found["since"])
        return total

    return revenue


CSV = "name,weight,kind\nalpha,1.5,a\nbeta,-0.5,b\ngamma,2.25,a\n"


@program(factors=reals(3, -1.0, 1.0))
def table_read_from_text(a, b):
    def total(factors):
        rows = list(csv.DictReader(io.StringIO(CSV)))
        by_kind = {"a": a, "b": b}
        return sum(by_kind[row["kind"]] * float(row["weight"]) * f for row, f in zip(rows, factors))

    return total


@program(settings=text('{"rate": 0.5, "layers": [2, 3]}', '{"rate": 0.1, "layers": [1]}'), x=real(-1.0, 1.0))
def settings_in_json(w, b):
    def output(settings, x):
        config = json.loads(settings)
        h = x
        for width in config["layers"]:
            h = (w * h * width + b).tanh()
        return config["rate"] * h

    return output


@program(options=choice({}, {"power": 3}, {"offset": 0.5, "power": 2}), x=real(0.1, 2.0))
def options_over_defaults(scale):
    defaults = {"power": 1, "offset": 0.0, "clip": 5.0}

    def curve(options, x):
        o = ChainMap(options, defaults)
        y = scale * x ** o["power"] + o["offset"]
        return y if y < o["clip"] else 0.0 * scale + o["clip"]

    return curve


@program(x=reals(3, -1.0, 1.0))
def parameters_in_a_dict(w, b, gain):
    model = {"dense/w": w, "dense/b": b, "norm/gain": gain}

    def output(x):
        def get(path):
            return model["/".join(path)]

        total = 0.0
        for v in x:
            total = total + (get(["dense", "w"]) * v + get(["dense", "b"])).tanh()
        penalty = sum(p**2 for name, p in model.items() if not name.endswith("/b"))
        return total * get(("norm", "gain")) + 0.01 * penalty

    return output


@program(
    shape=choice({"kind": "circle", "r": 1.5}, {"kind": "box", "w": 2.0, "h": 0.5}, {"kind": "line", "length": 3.0})
)
def tagged_records(ink, paper):
    def cost(shape):
        match shape:
            case {"kind": "circle", "r": r}:
                return ink * 6.283 * r + paper * 3.1416 * r**2
            case {"kind": "box", "w": w, "h": h}:
                return ink * 2 * (w + h) + paper * w * h
            case {"kind": "line", "length": length}:
                return ink * length
            case _:
                raise ValueError(shape)

    return cost


@program(bag=text("abracadabra", "banana", "mississippi"), smooth=real(0.1, 1.0))
def letter_frequencies(vowel, consonant):
    def cross_entropy(bag, smooth):
        counts = Counter(bag)
        scores = {c: vowel if c in "aeiou" else consonant for c in sorted(counts)}
        log_z = wengert.logsumexp(list(scores.values()))
        n = counts.total()
        return -sum((k + smooth) / n * (scores[c] - log_z) for c, k in counts.most_common())

    return cross_entropy


@program(readings=matrix(2, 2, 0.0, 3.0))
def rows_sorted_and_grouped(weight, decay):
    def score(readings):
        rows = sorted(({"hour": int(h), "value": v} for h, v in readings), key=operator.itemgetter("hour"))
        total = 0.0
        for hour, group in groupby(rows, key=lambda row: row["hour"]):
            peak = max(row["value"] for row in group)
            total = total + weight * peak * (-decay * hour).exp()
        return total

    return score


@program(table=array(5, 3, lo=-1.0, hi=1.0))
def standardised_columns(w=weights(3)):
    names = ("age", "income", "height")

    def prediction(table):
        columns = dict(zip(names, table.T))
        scaled = {k: (v - v.mean()) / (v.std() + 1e-6) for k, v in columns.items()}
        first = [scaled[name][0] for name in names]
        return sum(wi * x for wi, x in zip(w, first)).sigmoid()

    return prediction


@program(left=record(x=real(-1.0, 1.0), y=real(-1.0, 1.0)), right=record(x=real(-1.0, 1.0), y=real(-1.0, 1.0)))
def merged_records(a, b):
    def value(left, right):
        both = {f"left_{k}": v for k, v in left.items()} | {f"right_{k}": v for k, v in right.items()}
        return sum((a if key.startswith("left") else b) * v**2 for key, v in both.items())

    return value


@program(
    tree=choice(
        {"value": 1.0, "next": None}, {"value": 0.5, "next": {"value": -2.0, "next": {"value": 1.5, "next": None}}}
    )
)
def linked_records(gain, decay):
    def fold(tree):
        total, factor = 0.0 * gain, 1.0
        while tree is not None:
            total = total + factor * gain * tree["value"]
            factor = factor * decay
            tree = tree["next"]
        return total

    return fold


@program(levels=reals(4, 0.0, 1.0))
def simple_namespaces(alpha, beta):
    def total(levels):
        state = SimpleNamespace(level=levels[0], trend=0.0, errors=[])
        for y in levels[1:]:
            forecast = state.level + state.trend
            error = y - forecast
            state.errors.append(error)
            state.level = forecast + alpha.sigmoid() * error
            state.trend = state.trend + beta.sigmoid() * error
        return sum(e * e for e in state.errors)

    return total


class Order(TypedDict, total=False):
    price: float
    units: int
    coupon: float


@program(order=record(price=real(5.0, 20.0), units=whole(1, 4)), has_coupon=flag())
def typed_dict_with_missing_keys(discount, shipping):
    def total(order: Order, has_coupon):
        basket: Order = {**order, "coupon": 2.0} if has_coupon else order
        subtotal = basket["price"] * basket["units"] - basket.get("coupon", 0.0)
        free = subtotal > 40.0
        return subtotal * (1 - 0.1 * discount) + (0.0 if free else shipping)

    return total


Sample = namedtuple("Sample", ["x", "y", "weight"], defaults=[1.0])


@program(xs=reals(4), ys=reals(4), heavy=whole(0, 3))
def weighted_named_samples(slope, intercept):
    def loss(xs, ys, heavy):
        samples = [Sample(x, y) if i != heavy else Sample(x, y, weight=3.0) for i, (x, y) in enumerate(zip(xs, ys))]
        return sum(s.weight * (slope * s.x + intercept - s.y) ** 2 for s in samples) / sum(s.weight for s in samples)

    return loss


@program(quantities=record(flour=real(0.0, 2.0), sugar=real(0.0, 1.0), butter=real(0.0, 1.0)))
def recipe(sweet, rich):
    properties = MappingProxyType({"flour": (0.0, 0.1), "sugar": (1.0, 0.0), "butter": (0.1, 1.0)})

    def taste(quantities):
        total = sum(quantities.values())
        sweetness = sum(q * properties[name][0] for name, q in quantities.items()) / total
        richness = sum(q * properties[name][1] for name, q in quantities.items()) / total
        return -((sweetness - sweet.sigmoid()) ** 2) - (richness - 0.5 * rich.sigmoid()) ** 2

    return taste


@program(values=reals(3, -1.0, 1.0), names=choice(("a", "b", "c"), ("c", "a", "b")))
def ordered_fields(wa, wb, wc):
    def checksum(values, names):
        fields = OrderedDict(zip(names, values))
        fields.move_to_end("a")
        lookup = {"a": wa, "b": wb, "c": wc}
        return sum((place + 1) * lookup[name] * v for place, (name, v) in enumerate(fields.items()))

    return checksum


@program(window=whole(1, 4), stream=reals(8, -1.0, 1.0))
def sliding_window(gain, leak):
    def output(window, stream):
        recent = deque(maxlen=window)
        y = 0.0
        for x in stream:
            recent.append(x)
            average = sum(recent) / len(recent)
            y = leak.sigmoid() * y + gain * (x - average)
        return y + gain * recent[-1]

    return output


class Matrix:
    """A table of numbers that is read by row and column names."""

    def __init__(self, rows, names):
        self.rows, self.names = rows, names

    def __getitem__(self, key):
        row, column = key
        return self.rows[self.names.index(row)][self.names.index(column)]

    def __len__(self):
        return len(self.rows)


@program(rows=matrix(3, 3, 0.0, 1.0), start=text("rain", "sun"))
def named_transition_table(stay, leave):
    def two_days(rows, start):
        table = Matrix(rows, ["rain", "sun", "snow"])
        total = 0.0
        for middle in table.names:
            first = table[start, middle] * (stay if middle == start else leave)
            total += first * table[middle, "sun"] / len(table)
        return total

    return two_days


@program(
    people=built(
        lambda draw: [{"age": draw.randint(1, 80), "income": draw.uniform(0, 9)} for _ in range(draw.randint(1, 4))]
    )
)
def list_of_records(base, slope):
    def total_support(people):
        adults = [p for p in people if p["age"] >= 18]
        children = len(people) - len(adults)
        need = base * (len(adults) + 0.5 * children)
        means = sum(p["income"] for p in adults)
        return (need * 4 - slope * means).softplus()

    return total_support


@program(invoice=record(lines=matrix(3, 2, 1.0, 9.0), paid=reals(2, 0.0, 20.0), late=whole(0, 40)))
def records_that_hold_tables(interest, fee):
    def balance(invoice):
        owed = sum(units * price for units, price in invoice["lines"])
        open_ = max(owed - sum(invoice["paid"]), 0.0)
        months, days = divmod(invoice["late"], 30)
        return open_ * (1 + 0.01 * interest) ** months + fee * days / 30

    return balance


@program(gene=text("ATG", "GCC", "TAA"), expression=record(liver=real(0.0, 5.0), brain=real(0.0, 5.0)))
def sparse_lookup(w_liver, w_brain, unknown):
    effects = {("ATG", "liver"): 1.5, ("GCC", "brain"): -0.7, ("ATG", "brain"): 0.2}

    def phenotype(gene, expression):
        w = dict(liver=w_liver, brain=w_brain)
        total = 0.0
        for tissue in expression:
            key = gene, tissue
            total += w[tissue] * expression[tissue] * effects[key] if key in effects else 0.1 * unknown
        return total

    return phenotype


class Account:
    """What an account holds, and what is done with it."""

    __slots__ = ("balance", "log", "owner")

    def __init__(self, owner, balance):
        self.owner, self.balance, self.log = owner, balance, []

    def deposit(self, amount):
        self.balance = self.balance + amount
        self.log.append(("in", amount))
        return self

    def withdraw(self, amount):
        if amount > self.balance:
            raise ValueError(f"{self.owner} has {float(getattr(self.balance, 'data', self.balance)):.2f}")
        self.balance = self.balance - amount
        self.log.append(("out", amount))
        return self


@program(start=real(0.0, 5.0), moves=reals(3, -3.0, 3.0), engine="a refused withdrawal is written into a message")
def bank_accounts(rate, fee):
    def end_balance(start, moves):
        account = Account("ann", start * rate)
        refused = 0
        for move in moves:
            try:
                account.deposit(move) if move >= 0 else account.withdraw(-move)
            except ValueError:
                refused += 1
        return account.balance - fee * refused + 0.01 * len(account.log)

    return end_balance


@program(schedule=choice([("08:30", 1.5), ("11:00", 2.0)], [("08:15", 0.5)]), wage=real(10.0, 30.0))
def time_sheet(overtime, meal):
    def pay(schedule, wage):
        total = 0.0 * meal
        for start, hours in schedule:
            h, m = map(int, start.split(":"))
            minute = 60 * h + m
            rate = wage * (1 + 0.5 * overtime) if minute < 9 * 60 else wage
            total += rate * hours + (meal if minute <= 12 * 60 < minute + 60 * hours else 0.0)
        return total

    return pay


@program(values=array(6, lo=-1.0, hi=1.0), key=whole(0, 1), engine="it copies its numbers into an array of records")
def structured_array(low, high):
    def total(values, key):
        table = np.zeros(3, dtype=[("a", float), ("b", float)])
        table["a"], table["b"] = values[:3], values[3:]
        column = table["ab"[key]]
        return low * float(column.min()) + high * float(column.max()) + (low * column).sum()

    return total


@program(before=record(x=real(), y=real(), z=real()), changes=record(y=real(), z=real()))
def difference_of_records(dx, dy, dz):
    def size_of_the_change(before, changes):
        after = before | changes
        weights_ = {"x": dx, "y": dy, "z": dz}
        moved = {k for k in after if after[k] != before[k]}
        return sum(weights_[k] * (after[k] - before[k]) ** 2 for k in sorted(moved)) + 0.1 * len(moved)

    return size_of_the_change


@program(x=record(first=real(-1.0, 1.0), second=real(-1.0, 1.0)))
def keyword_expansion(a, b):
    def plane(first, second, offset=0.25):
        return a * first + b * second + offset

    def value(x):
        return plane(**x) * plane(**{k: -v for k, v in x.items()}, offset=Value(1.0))

    return value


@program(names=text("i,j,k", "k;j", "j"), data=reals(3, -1.0, 1.0))
def columns_by_text(wi, wj, wk):
    def chosen(names, data):
        model = {"i": wi, "j": wj, "k": wk}
        columns = dict(zip("ijk", data))
        total = 0.0
        for name in names.replace(";", ",").split(","):
            total += model[name.strip()] * columns[name]
        return total

    return chosen
