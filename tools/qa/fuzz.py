"""Random programs (`tests/random_programs.py`) beside PyTorch, mpmath, the other engine, and other runs of this one.

At length, as commands::

    python -m tools.qa.fuzz --against torch --count 100000
    python -m tools.qa.fuzz --against mpmath --count 10000
    python -m tools.qa.fuzz --against engines --count 20000
    python -m tools.qa.fuzz --against hashes --count 100

Each program's value and gradient are held to the oracle's within 1e-9 of the larger of 1 and the expected number; on
the way, operators and methods are held to the rows of the table, bit for bit. What programs leave out stands in
`tests/random_programs.py`, and is counted. The exit status is 1 if anything differs. `--seed` begins elsewhere.
"""

from __future__ import annotations

import argparse
import hashlib
import math
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import wengert
from tests.random_programs import OPERATIONS, RandomProgram, random_program
from tools.qa.oracles import torch_rows, truths
from wengert.ops import BY_NAME

TOLERANCE = 1e-9
ROWS = {name: BY_NAME[name] for name in OPERATIONS}
Result = tuple[float, list[float]]
Table = dict[str, Callable[..., Any]]

# -- PyTorch ----------------------------------------------------------------------------------------------------------


def torch_table() -> Table:
    """Each row as PyTorch computes it; what it has no function for, as one writes it there."""
    import torch
    from scipy.special import betainc, j0, j1, jvp

    def tensor(x: Any) -> Any:
        return x if isinstance(x, torch.Tensor) else torch.tensor(x, dtype=torch.float64)

    def dot(*xs: Any) -> Any:
        half = len(xs) // 2
        return torch.stack(xs[:half]) @ torch.stack(xs[half:-1]) + xs[-1]

    def known(value: Any, x: Any, slope: Any) -> Any:
        """A value that PyTorch does not differentiate, with its derivative."""
        return value.detach() + slope.detach() * (x - x.detach())

    def beta_pdf(a: Any, b: Any, x: Any) -> Any:
        scale = torch.lgamma(a + b) - torch.lgamma(a) - torch.lgamma(b)
        return torch.exp((a - 1) * torch.log(x) + (b - 1) * torch.log1p(-x) + scale)

    table = torch_rows() | {
        "stop_gradient": torch.detach,
        "cbrt": lambda x: torch.sign(x).detach() * torch.abs(x) ** (1 / 3),
        "leaky_relu": lambda x, slope: torch.where(x > 0, x, slope * x),
        "elu": lambda x, alpha: torch.where(x <= 0, alpha * torch.expm1(x), x),
        "logistic_pdf": lambda x: torch.sigmoid(x) * torch.sigmoid(-x),
        "gaussian": lambda x: torch.exp(-x * x),
        "normal_pdf": lambda x: torch.exp(-x * x / 2) / math.sqrt(2 * math.pi),
        "polygamma": lambda n, x: torch.polygamma(int(n), x),
        "gammainc": torch.special.gammainc,
        "gammaincc": torch.special.gammaincc,
        "gamma_pdf": lambda a, x: torch.exp((a - 1) * torch.log(x) - x - torch.lgamma(a)),
        "betainc": lambda a, b, x: known(tensor(betainc(a.item(), b.item(), x.item())), x, beta_pdf(a, b, x)),
        "beta_pdf": beta_pdf,
        "j0": lambda x: known(tensor(j0(x.item())), x, tensor(-j1(x.item()))),  # PyTorch's are good to 1e-9
        "j1": lambda x: known(tensor(j1(x.item())), x, tensor(jvp(1, x.item()))),
        "dot": dot,
    }
    return {name: (lambda *xs, f=function: f(*map(tensor, xs))) for name, function in table.items()}


def by_torch() -> Callable[[RandomProgram], Result]:
    """What PyTorch makes of a program."""
    import torch

    torch.set_num_threads(1)
    table = torch_table()

    def run(program: RandomProgram) -> Result:
        leaves = [torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in program.point]
        result = program(*leaves, operations=table)
        if result.requires_grad:
            result.backward()
        return float(result.detach()), [0.0 if x.grad is None else float(x.grad) for x in leaves]

    return run


# -- mpmath -----------------------------------------------------------------------------------------------------------


class Dual:
    """A number of mpmath with its derivative with respect to each input: forward-mode differentiation in many digits.

    The rules of + - * / and of a few elementary functions are all it knows; everything else is written over them.
    """

    __slots__ = ("slopes", "value")

    def __init__(self, value: Any, slopes: list[Any]) -> None:
        self.value, self.slopes = value, slopes

    def chain(self, value: Any, slope: Any) -> Dual:
        """A function of this number, by its value and its derivative."""
        return Dual(value, [slope * s for s in self.slopes])

    def __add__(self, other: Any) -> Dual:
        if isinstance(other, Dual):
            return Dual(self.value + other.value, [s + t for s, t in zip(self.slopes, other.slopes, strict=True)])
        return Dual(self.value + other, self.slopes)

    def __mul__(self, other: Any) -> Dual:
        if isinstance(other, Dual):
            pairs = zip(self.slopes, other.slopes, strict=True)
            return Dual(self.value * other.value, [s * other.value + self.value * t for s, t in pairs])
        return self.chain(self.value * other, other)

    def inverse(self) -> Dual:
        return self.chain(1 / self.value, -1 / self.value**2)

    def __neg__(self) -> Dual:
        return self * -1

    def __sub__(self, other: Any) -> Dual:
        return self + -other

    def __truediv__(self, other: Any) -> Dual:
        return self * (other.inverse() if isinstance(other, Dual) else 1 / other)

    def __radd__(self, other: Any) -> Dual:
        return self + other

    def __rmul__(self, other: Any) -> Dual:
        return self * other

    def __rsub__(self, other: Any) -> Dual:
        return -self + other

    def __rtruediv__(self, other: Any) -> Dual:
        return self.inverse() * other


def dual_table() -> Table:
    """Each row over duals, from the calculus book."""
    import mpmath
    from mpmath import mp

    half = mpmath.mpf(1) / 2

    def real(x: Any) -> Any:
        return x.value if isinstance(x, Dual) else x

    def elementary(value: Callable[..., Any], slope: Callable[..., Any]) -> Callable[..., Any]:
        return lambda x: x.chain(value(x.value), slope(x.value)) if isinstance(x, Dual) else value(x)

    exp = elementary(mp.exp, mp.exp)
    log = elementary(mp.log, lambda x: 1 / x)
    sin, cos = elementary(mp.sin, mp.cos), elementary(mp.cos, lambda x: -mp.sin(x))
    asin = elementary(mp.asin, lambda x: 1 / mp.sqrt(1 - x * x))
    atan = elementary(mp.atan, lambda x: 1 / (1 + x * x))
    erf = elementary(mp.erf, lambda x: 2 / mp.sqrt(mp.pi) * mp.exp(-x * x))
    lgamma = elementary(lambda x: mp.log(abs(mp.gamma(x))), lambda x: mp.psi(0, x))

    def sqrt(x: Any) -> Any:
        return exp(log(x) * half)

    def absolute(x: Any) -> Any:
        return x if real(x) > 0 else -x

    def sigmoid(x: Any) -> Any:
        return 1 / (1 + exp(-x))

    def psi(n: int, x: Any) -> Any:
        return elementary(lambda x: mp.psi(n, x), lambda x: mp.psi(n + 1, x))(x)

    def power(x: Any, y: Any) -> Any:
        whole = not isinstance(y, Dual) and y == int(y)
        return elementary(lambda x: x ** int(y), lambda x: y * x ** (int(y) - 1))(x) if whole else exp(log(x) * y)

    def extreme(best: Callable[..., Any]) -> Callable[..., Any]:
        def choose(*xs: Any) -> Any:  # a tie, of one number with itself, shares its gradient evenly
            reach = [x for x in xs if real(x) == best(map(real, xs))]
            return total(*reach) * (mpmath.mpf(1) / len(reach))

        return choose

    def total(*xs: Any) -> Any:
        first, *rest = xs
        for x in rest:
            first = first + x
        return first

    def product(*xs: Any) -> Any:
        first, *rest = xs
        for x in rest:
            first = first * x
        return first

    def dot(*xs: Any) -> Any:
        n = len(xs) // 2
        return total(*[w * x for w, x in zip(xs[:n], xs[n:-1], strict=True)], xs[-1])

    def atan2(y: Any, x: Any) -> Any:
        turn = mp.atan2(real(y), real(x))
        if abs(real(x)) > abs(real(y)):
            slope = atan(y / x)
        else:
            slope = -atan(x / y)
        return slope + (turn - real(slope))  # the same up to a constant

    def numbers(function: Callable[..., Any]) -> Callable[..., Any]:
        def applied(*xs: Any) -> Any:
            result = function(*[x if isinstance(x, Dual) else mpmath.mpf(x) for x in xs])
            if isinstance(result, Dual):
                return result
            return Dual(result, [mpmath.mpf(0)] * max(len(x.slopes) for x in xs if isinstance(x, Dual)))

        return applied

    def of_truth(name: str) -> Callable[..., Any]:
        truth = truths()[name]
        slope: Any = truth.partials[-1]

        def applied(*operands: Any) -> Any:
            *shapes, x = operands
            at = [*map(real, shapes), real(x)]
            return x.chain(truth.value(*at), slope(*at)) if isinstance(x, Dual) else truth.value(*at)

        return applied

    largest, least = extreme(max), extreme(min)
    table: Table = {
        "add": lambda x, y: x + y,
        "sub": lambda x, y: x - y,
        "mul": lambda x, y: x * y,
        "div": lambda x, y: x / y,
        "pow": power,
        "neg": lambda x: -x,
        "relu": lambda x: x if x.value > 0 else x * 0,
        "exp": exp,
        "log": log,
        "tanh": lambda x: 2 * sigmoid(2 * x) - 1,
        "abs": absolute,
        "sign": elementary(mp.sign, lambda x: 0),
        "floor": elementary(mp.floor, lambda x: 0),
        "round": elementary(mp.nint, lambda x: 0),
        "remainder": lambda x, y: x - y * mp.floor(real(x) / real(y)),
        "minimum": least,
        "maximum": largest,
        "where": lambda c, x, y: x if real(c) else y,
        "clip": lambda x, low, high: least(largest(x, low), high),
        "stop_gradient": elementary(lambda x: x, lambda x: 0),
        "exp2": lambda x: exp(x * mp.log(2)),
        "expm1": lambda x: exp(x) - 1,
        "log2": lambda x: log(x) / mp.log(2),
        "log10": lambda x: log(x) / mp.log(10),
        "log1p": lambda x: log(1 + x),
        "sqrt": sqrt,
        "cbrt": lambda x: exp(log(absolute(x)) / 3) * mp.sign(x.value),
        "square": lambda x: x * x,
        "reciprocal": lambda x: 1 / x,
        "sin": sin,
        "cos": cos,
        "tan": lambda x: sin(x) / cos(x),
        "asin": asin,
        "acos": lambda x: mp.pi / 2 - asin(x),
        "atan": atan,
        "atan2": atan2,
        "sinh": lambda x: (exp(x) - exp(-x)) * half,
        "cosh": lambda x: (exp(x) + exp(-x)) * half,
        "asinh": lambda x: log(x + sqrt(x * x + 1)),
        "acosh": lambda x: log(x + sqrt(x * x - 1)),
        "atanh": lambda x: (log(1 + x) - log(1 - x)) * half,
        "hypot": lambda x, y: sqrt(x * x + y * y),
        "xlogy": lambda x, y: x * log(y),
        "xlog1py": lambda x, y: x * log(1 + y),
        "entr": lambda x: -x * log(x),
        "sinc": lambda x: sin(x * mp.pi) / (x * mp.pi) if real(x) else x * 0 + 1,
        "sigmoid": sigmoid,
        "logistic_pdf": lambda x: sigmoid(x) * sigmoid(-x),
        "logsigmoid": lambda x: log(sigmoid(x)),
        "softplus": lambda x: log(1 + exp(x)),
        "leaky_relu": lambda x, slope: x if real(x) > 0 else slope * x,
        "elu": lambda x, alpha: x if real(x) > 0 else alpha * (exp(x) - 1),
        "gelu": lambda x: x * (1 + erf(x / mp.sqrt(2))) * half,
        "silu": lambda x: x * sigmoid(x),
        "erf": erf,
        "erfc": lambda x: 1 - erf(x),
        "normal_cdf": lambda x: (1 + erf(x / mp.sqrt(2))) * half,
        "normal_pdf": lambda x: exp(-(x * x) * half) / mp.sqrt(2 * mp.pi),
        **{name: of_truth(name) for name in ("normal_ppf", "gammainc", "gammaincc", "gamma_pdf")},
        **{name: of_truth(name) for name in ("betainc", "beta_pdf", "j0", "j1")},
        "gaussian": lambda x: exp(-(x * x)),
        "lgamma": lgamma,
        "digamma": lambda x: psi(0, x),
        "polygamma": lambda n, x: psi(int(n), x),
        "sum": total,
        "mean": lambda *xs: total(*xs) / len(xs),
        "prod": product,
        "norm": lambda *xs: sqrt(total(*[x * x for x in xs])),
        "dot": dot,
        "max": largest,
        "min": least,
        "logsumexp": lambda *xs: log(total(*map(exp, xs))),
    }
    return {name: numbers(function) for name, function in table.items()}


def by_mpmath(digits: int = 40) -> Callable[[RandomProgram], Result]:
    """What mpmath's duals make of a program."""
    from mpmath import mp, mpf

    table = dual_table()

    def run(program: RandomProgram) -> Result:
        with mp.workdps(digits):
            count = len(program.point)
            leaves = [Dual(mpf(x), [mpf(i == j) for j in range(count)]) for i, x in enumerate(program.point)]
            result = program(*leaves, operations=table)
            return float(result.value), [float(slope) for slope in result.slopes]

    return run


# -- comparing --------------------------------------------------------------------------------------------------------


def flat(result: Result) -> list[float]:
    """The value, and the gradient behind it."""
    return [result[0], *result[1]]


def error(got: Result, want: Result) -> float:
    """The largest difference, each relative to the larger of 1 and the number that was expected; inf for a nan."""
    differences = [abs(a - b) / max(1.0, abs(b)) for a, b in zip(flat(got), flat(want), strict=True)]
    return max(d if d == d else math.inf for d in differences)


def bits(result: Result) -> str:
    """Every bit of it."""
    return " ".join(x.hex() for x in flat(result))


def fuzz(
    oracle: Callable[[RandomProgram], Result],
    seeds: range,
    table: Table,
    arbiter: Callable[[RandomProgram], Result] | None = None,
) -> tuple[dict[str, Any], list[str]]:
    """The figures of a run, and what differs: a text for each program.

    Where the oracle computes in doubles too, an arbiter tells whose error a difference is: PyTorch's trigamma, by which
    digamma is differentiated, is good to 5e-10 only.
    """
    worst, steps, wrong, excused = 0.0, 0, [], []
    drawn: Counter[str] = Counter()
    left_out: Counter[str] = Counter()
    known = [name for name in OPERATIONS if name in table]
    for seed in seeds:
        program = random_program(seed, known)
        drawn.update(step.operation for step in program.steps)
        left_out.update(program.left_out)
        steps += len(program.steps)
        got, want = program.value_and_gradient(), oracle(program)
        off = error(got, want)
        if not off <= TOLERANCE and arbiter is not None:
            want = arbiter(program)
            off = error(got, want)
            excused += [program] if off <= TOLERANCE else []
        worst = max(worst, off)
        if not off <= TOLERANCE:
            wrong.append(f"seed {seed}, off by {off:.2g}: {flat(got)} instead of {flat(want)}\n{program}")
        if bits(program.value_and_gradient(ROWS)) != bits(got):
            wrong.append(f"seed {seed}: the rows give other bits than the operators\n{program}")
    figures = {
        "programs": len(seeds),
        "steps": steps,
        "operations": len(drawn),
        "of the rarest": min(drawn.values(), default=0),
        "left out": dict(left_out),
        "not compared": [name for name in OPERATIONS if name not in table],
        "worst difference": worst,
        "differences that are the oracle's error": len(excused),
        "operations that all of these have": sorted(
            set.intersection(*[{step.operation for step in program.steps} for program in excused]) if excused else ()
        ),
    }
    return figures, wrong


def printed(seeds: range) -> Iterator[str]:
    """Every bit of each program's results, and of some of compiled functions, where NumPy is installed."""
    for seed in seeds:
        yield bits(random_program(seed).value_and_gradient())
    try:
        from tools.qa import lifting_fuzz
    except ImportError:
        return
    for seed in seeds[:3]:
        made = lifting_fuzz.program(seed)
        loss = wengert.compile(made.function).mean([[0.1 * k for k in range(made.width)], [0.3] * made.width])
        loss.backward()
        yield bits((loss.data, [p.grad for p in made.parameters]))


def elsewhere(seeds: range, **environment: str) -> list[str]:
    """The engine of another process, which this environment chooses, and what is `printed` there."""
    command = [sys.executable, "-m", "tools.qa.fuzz", "--print", str(seeds.start), str(seeds.stop)]
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def two_engines(seeds: range) -> list[str]:
    """The programs whose bits differ between the two engines."""
    compiled, *there = elsewhere(seeds, WENGERT_INTERPRETED="0")
    interpreted, *here = elsewhere(seeds, WENGERT_INTERPRETED="1")
    if (compiled, interpreted) != ("compiled", "interpreted"):
        return [f"there are no two engines here to compare: {compiled}, {interpreted}"]
    pairs = zip(seeds, here, there, strict=False)
    return [f"seed {seed}\n{random_program(seed)}" for seed, a, b in pairs if a != b]


def hash_seeds(seeds: range, programs: int = 40) -> dict[str, list[int]]:
    """The hash seeds by the digest of everything that their processes print."""
    found: dict[str, list[int]] = {}
    for seed in seeds:
        lines = elsewhere(range(programs), PYTHONHASHSEED=str(seed))
        found.setdefault(hashlib.sha256("\n".join(lines).encode()).hexdigest(), []).append(seed)
    return found


def main() -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--against", choices=("torch", "mpmath", "engines", "hashes"), default="torch")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--print", type=int, nargs=2, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    seeds = range(asked.seed, asked.seed + asked.count)
    if asked.print:
        print("compiled" if wengert.engine.compiled else "interpreted")
        print(*printed(range(*asked.print)), sep="\n")
        return 0
    if asked.against == "hashes":
        digests = hash_seeds(seeds)
        print(f"{asked.count} hash seeds: {len(digests)} different results")
        return len(digests) != 1
    if asked.against == "engines":
        wrong = two_engines(seeds)
        print(f"{asked.count} programs, compiled and interpreted")
    else:
        if asked.against == "torch":
            figures, wrong = fuzz(by_torch(), seeds, torch_table(), by_mpmath())
        else:
            figures, wrong = fuzz(by_mpmath(), seeds, dual_table())
        print(f"against {asked.against}, {'compiled' if wengert.engine.compiled else 'interpreted'}")
        print(*[f"{name}: {figure}" for name, figure in figures.items()], sep="\n")
    print(*wrong[:20], f"mismatches: {len(wrong)}", sep="\n")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
