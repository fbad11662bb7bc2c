"""The benchmarks compare before they time, say who failed, and print what they found."""

import json
import math
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from benchmarks import (
    calls,
    collected,
    derivatives,
    fitting,
    formulas,
    gpt,
    growing,
    instructions,
    lines,
    long_runs,
    plain,
    plain_functions,
    preparation,
    problems,
    race,
    report,
    roster,
    scalar,
    sizes,
    solving,
    timing,
)
from benchmarks import recurrences as recurring
from benchmarks.peers import derivatives as engineering
from benchmarks.peers import estimation, physics
from tests.programs import trial
from wengert import Graph, Value, dot

pytestmark = pytest.mark.once  # what is tried are tools and pages, not an engine

PEERS = {peer.key: peer for peer in roster.PEERS}


def quiet(text):
    pass


@pytest.mark.parametrize("name", ["tiny", "moons"])
def test_the_plain_engine_and_ours_train_alike(name):
    problem = problems.NETWORKS[name]()
    ours, theirs = scalar.network(Value, problem), scalar.network(plain.Value, problem)
    for _ in range(2):
        assert ours() == pytest.approx(theirs(), rel=1e-12)


def test_expression_is_the_one_of_the_readme():
    assert [round(x, 4) for x in scalar.expression(plain.Value)()] == [24.7041, 138.8338, 645.5773]


def test_the_gpt_is_the_same_with_dot_and_in_plain_python():
    problem = problems.names()
    losses, gradients = [], []
    for kind, engine in ((Value, {}), (Value, {"dot": dot}), (plain.Value, {})):
        matrices = {name: [[kind(x) for x in row] for row in rows] for name, rows in problem.matrices.items()}
        loss = gpt.loss(problem.documents[11], matrices, problem.heads, **engine)
        loss.backward()
        losses.append(loss.data)
        gradients.append([p.grad for rows in matrices.values() for row in rows for p in row])
    assert len(gradients[0]) == 4192
    for i in (1, 2):
        assert losses[i] == pytest.approx(losses[0], rel=1e-12)
        assert gradients[i] == pytest.approx(gradients[0], rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("name", [pytest.param("digits", marks=pytest.mark.slow), "tiny", "moons"])
def test_the_first_gradient_is_pytorchs(name):
    torch = pytest.importorskip("torch", reason="compares with PyTorch")
    problem = problems.NETWORKS[name]()
    x = torch.tensor(problem.X, dtype=torch.float64)
    parameters = []
    for i, (weights, biases) in enumerate(zip(problem.weights, problem.biases, strict=True)):
        w, b = (torch.tensor(numbers, dtype=torch.float64, requires_grad=True) for numbers in (weights, biases))
        x = x @ w.T + b
        kind = problem.hidden if i + 1 < len(problem.weights) else problem.output
        x = {"relu": torch.relu, "tanh": torch.tanh, "linear": lambda z: z}[kind](x)
        parameters += [w, b]
    if problem.loss == "crossentropy":
        loss = torch.nn.functional.cross_entropy(x, torch.tensor(problem.Y))
    else:
        y = torch.tensor(problem.Y, dtype=torch.float64)
        decay = 1e-4 * sum((p * p).sum() for p in parameters)
        loss = ((x[:, 0] - y) ** 2).sum() if problem.loss == "squared" else torch.relu(1 - y * x[:, 0]).mean() + decay
    loss.backward()
    step = scalar.network(Value, problem)
    first, second = step()[0], step()[0]
    assert first == pytest.approx(loss.item(), rel=1e-12)
    slope = sum(float((p.grad**2).sum()) for p in parameters)  # the loss falls by about lr times this
    assert first > second
    assert first - second == pytest.approx(problem.lr * slope, rel=0.6)


def test_a_race_compares_and_times_and_a_missing_peer_is_a_row():
    absent = roster.Peer("nobody", "no_such_module", "nobody")
    peers = [PEERS["wengert"], PEERS["plain"], absent]
    results = race.race("tiny", peers, rounds=3, seconds=0.001, limit=60.0, say=quiet)
    assert [len(row.rounds) for row in results] == [3, 3, 0]
    assert results[2].failed.startswith("ModuleNotFoundError")
    table = report.tables({"tiny": results}, {}, complete=False)
    assert "plain Python Value with slots" in table
    assert "no_such_module" in table


@pytest.mark.parametrize("name", ["tiny", "moons", "digits"])
def test_a_compiled_loss_trains_as_numpy_by_hand(name):
    pytest.importorskip("numpy", reason="the compiler and its peer need it")
    from benchmarks.peers import numpy_by_hand, wengert_compiled

    ours, kernel = wengert_compiled.KERNELS[name]()
    theirs, hands = numpy_by_hand.KERNELS[name]()
    scale = 1.0 if name == "tiny" else 1.0 / len(problems.NETWORKS[name]().X)
    hand = hands()[0]
    assert kernel() * scale == pytest.approx(hand, rel=1e-12)
    assert hands()[0] == hand  # no update
    for _ in range(3):
        assert ours() == pytest.approx(theirs(), rel=1e-9)


def test_of_a_kernel_whole_steps_are_compared_and_the_kernel_is_timed():
    pytest.importorskip("numpy", reason="the compiler and its peer need it")
    peers = [PEERS[key] for key in ("wengert", "compiled", "kernel", "numpy-kernel", "plain", "numpy")]
    results = race.race("tiny", peers, rounds=3, seconds=0.01, limit=60.0, say=quiet)
    assert [row.failed for row in results] == [""] * 6
    assert len(results[2].rounds) == 3
    text = report.targets({"tiny": results}, {})
    assert "| `tiny`: time of Wengert, compiled loss / NumPy by hand | at most 1.0x |" in text


def test_without_rows_there_is_no_table_of_targets():
    assert "|" not in report.targets({}, {})


def test_the_first_call_of_a_compiled_function_is_timed():
    pytest.importorskip("numpy", reason="the compiler needs it")
    rows = race.lift(PEERS["compiled"], ["moons"], 60.0, quiet)
    assert rows[0]["nodes"] > 1600
    assert rows[0]["seconds"] > 0
    lifts = [*rows, {"program": "digits", "failed": "a | b"}]
    assert f"| record and lift, a node of {rows[0]['nodes']:,} | at most 1.5 µs |" in report.targets({}, {}, lifts)
    assert "| one example of `digits` | a / b | | |" in report.tables({}, {}, complete=False, lifts=lifts)


def test_bars_name_what_there_is():
    for bar in (*roster.BARS, *roster.LIMITS):
        assert bar.workload in roster.WORKLOADS
        assert {bar.who, bar.of} <= set(PEERS)


def test_an_import_may_cache_bytecode(monkeypatch):
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    assert race._seconds("import sys; sys.exit(sys.dont_write_bytecode)", {})[1] == ""
    monkeypatch.setattr(race, "_seconds", lambda statement, environment: (seconds.pop(0), ""))
    seconds = [9.0, 0.1, 0.3, 0.1, 0.4]  # the first import is not measured
    assert race.start([PEERS["wengert"]], 2, quiet)[0].rounds == pytest.approx([0.2, 0.3])


def test_the_plain_engine_goes_deep_and_adds_what_comes_by_several_ways():
    x = plain.Value(1.0)
    y = x
    for _ in range(50_000):
        y = y + 1.0
    (y * x + x).backward()
    assert x.grad == 50_001.0 + 1.0 + 1.0


def test_a_wrong_result_is_not_timed():
    assert race.difference([[1.0, 2.0]], [[1.0, 2.0 + 1e-12]]) == ""
    assert race.difference([[1.0, 2.0]], [[1.0, 2.1]]) == "wrong result at step 0: 2.0, not 2.1"
    assert race.difference([[math.nan]], [[1.0]]) != ""


def test_a_peer_that_dies_or_hangs_is_a_row():
    racer = race.Racer(PEERS["plain"])
    racer._process.kill()
    assert "died" in racer.ask(10.0, chain=10)["failed"]
    racer.close()
    racer = race.Racer(PEERS["plain"])
    assert racer.ask(0.01, chain=10_000_000)["failed"] == "longer than 0 s"


def test_chains_grow_and_their_gradient_is_checked():
    rows = race.grow(PEERS["wengert"], [100, 1000], 60.0, quiet)
    assert [row["size"] for row in rows] == [100, 1000]
    assert all(row["forward"] > 0 and row["backward"] > 0 for row in rows)


def test_what_is_written(tmp_path):
    row = race.Result(PEERS["wengert"], rounds=[1e-3, 2e-3, 3e-3, 4e-3])
    slow = race.Result(PEERS["micrograd"], rounds=[0.5, 0.5, 0.5])
    dead = race.Result(PEERS["jax"], failed="RuntimeError: a | b")
    growth = {"wengert": [{"size": 10**6, "forward": 1.0, "backward": 2.0, "free": 3.0, "bytes": 80.0}]}
    results = {"moons": [row, slow, dead]}
    text = report.write(tmp_path, results, growth, complete=True)
    targets = report.targets(results, growth)
    assert "| 130x | 200x ✓ |" in targets
    assert (tmp_path / "table.md").read_text() == f"{text}\n{targets}"
    assert report.marked("16x", False) == "**16x ✗**"
    assert "RuntimeError: a / b" in text
    nothing = race.Result(PEERS["micrograd"], rounds=[0.0, 0.0, 1e-4])  # an import that is lost in the start of Python
    assert "| too short to measure |" in report.write(
        tmp_path / "import", {"import": [row, nothing]}, {}, complete=False
    )
    assert json.loads((tmp_path / "results.json").read_text())["chain"] == growth
    page = tmp_path / "page.md"
    marks = report.BEGIN.format("targets"), report.END.format("targets")
    page.write_text(f"before\n{marks[0]}old{marks[1]}\nafter\n")
    report.into_page(page, targets, "targets")
    assert page.read_text().startswith("before\n")
    assert page.read_text().endswith("after\n")
    assert "old" not in page.read_text()
    page.write_text("no marks")
    with pytest.raises(ValueError, match="no place for the tables"):
        report.into_page(page, text)


@pytest.mark.plot
def test_plots(tmp_path):
    pytest.importorskip("matplotlib")
    rows = [{"size": 10**k, "forward": 1.0, "backward": 2.0, "free": 3.0, "bytes": 80.0} for k in range(2, 7)]
    for path in report.plot(tmp_path, {"wengert": rows}):
        assert "Wengert" in path.read_text()


def test_durations_read_well():
    assert [report.duration(x) for x in (2.5, 1e-3, 9.997e-4, 1.5e-6, 2e-9)] == [
        "2.5 s",
        "1 ms",
        "1 ms",
        "1.5 µs",
        "2 ns",
    ]


def test_instructions_say_what_is_missing(capsys, monkeypatch):
    monkeypatch.setattr(instructions.shutil, "which", lambda name: None)
    assert instructions.main([]) == 2
    assert "apt-get install valgrind" in capsys.readouterr().err
    monkeypatch.setattr(instructions.shutil, "which", lambda name: name)
    assert instructions.main(["--head", "no-such-commit"]) == 2
    assert "no such commit: no-such-commit" in capsys.readouterr().err


@pytest.mark.nightly  # XLA compiles for seconds; whoever measures has the steps compared before
@pytest.mark.jax
@pytest.mark.torch
def test_steps_of_fit_are_those_by_hand(monkeypatch):
    """What runs them is XLA, and PyTorch."""
    devices = pytest.importorskip("benchmarks.devices", reason="needs jax")
    monkeypatch.setitem(devices.WORKLOADS, "moons", (2, [4, 1], 10, 3))
    _, want = devices.Case("moons").fit(devices.CHECKED, False, backend="numpy")
    for how in (devices.by_jax, devices.by_torch, {"backend": "xla"}):
        assert devices.measured("moons", want, how) > 0
    other = devices.measured("moons", [2.0] * devices.CHECKED, devices.by_torch)
    assert devices.figure([1.0, other, 2.0]) == other
    assert other.startswith("other losses")
    assert [devices.figure(times) for times in ([1234.5, 1.0, 4e9], ["", ""])] == ["1,234", ""]


def test_growth_past_the_limit_fails(monkeypatch, capsys):
    counts = iter([1000, 1051, 1000, 1049])
    monkeypatch.setattr(instructions, "build", lambda commit, folder: folder)
    monkeypatch.setattr(instructions, "count", lambda package, workload: next(counts))
    assert not instructions.compare("a", "b")
    out = capsys.readouterr().out
    assert "+5.10%   more than +5%" in out
    assert "+4.90%\n" in out


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", preparation.SHAPES)
def test_what_is_prepared_is_the_program(name):
    case = preparation.SHAPES[name](700)
    assert preparation.error(case) < preparation.TOLERANCE
    nodes, seconds, *_ = preparation.prepare(case)
    assert 350 < nodes < 1400
    assert all(seconds[stage] >= 0.0 for stage in preparation.STAGES)


@pytest.mark.nightly
def test_the_table_of_preparation(capsys, monkeypatch):
    options = ["--shape", "tree", "--shape", "rk4", "--nodes", "200", "--doublings", "1", "--rounds", "1"]
    assert preparation.main(options) == 0
    head, *rows, last = capsys.readouterr().out.splitlines()
    assert head.split()[:5] == ["us", "a", "node", "200", "400"]
    assert [row.split()[0] for row in rows] == ["tree", "rk4"]
    assert last.startswith("the worst growth: ")
    monkeypatch.setattr(preparation, "TOLERANCE", -1.0)
    assert preparation.main(options) == 1
    assert "tree: wrong by" in capsys.readouterr().out


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_fit_is_measured_beside_its_kernel(backend, monkeypatch, capsys):
    pytest.importorskip("llvmlite" if backend == "native" else backend, reason="runs on that back end")
    monkeypatch.setattr(fitting, "SECONDS", 1e-4)
    assert fitting.main(["--backend", backend, "--workload", "tiny", "--rounds", "1"]) == 0
    row = capsys.readouterr().out.splitlines()[-1].split("|")
    assert row[1].strip() == "`tiny`"
    assert all(0.0 < float(cell) < math.inf for cell in row[2:-1])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", formulas.FORMULAS)
def test_a_formula_is_the_same_for_all(name):
    formula, numbers = formulas.FORMULAS[name]
    value, slopes, _ = formulas.set_up("engine", name)
    assert value == pytest.approx(float(formula(math, *numbers)), rel=1e-13)
    for n in range(min(len(numbers), 5)):  # by differences of Python's own floats
        ends = [formula(math, *[x + h * (k == n) for k, x in enumerate(numbers)]) for h in (-1e-5, 1e-5)]
        assert slopes[n] == pytest.approx((ends[1] - ends[0]) / 2e-5, rel=1e-5, abs=1e-6)
    for peer in ("NumPy", "native", *["plain C"] * (shutil.which("cc") is not None)):
        its, theirs, seconds = formulas.set_up(peer, name)
        assert seconds > 0.0
        assert timing.off([its, *theirs], [value, *slopes]) < formulas.CLOSE


def test_the_tables_of_formulas(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(timing, "SECONDS", 1e-4)
    monkeypatch.setattr(formulas, "PEERS", {peer: formulas.PEERS[peer] for peer in ("engine", "native")})
    monkeypatch.setattr(growing, "COUNTS", (1, 16))
    monkeypatch.setattr(growing, "WIDTHS", (8,))
    monkeypatch.setattr(growing, "SIZES", (80, 200))
    picture, page = tmp_path / "sweep.svg", tmp_path / "page.md"
    page.write_text("<!-- formulas: begin -->\n<!-- formulas: end -->\n")
    options = ["--only", "square of an error", "--rounds", "1", "--sweep", str(picture), "--preparation"]
    assert formulas.main([*options, "--page", str(page)]) == 0
    text = capsys.readouterr().out
    heads = ("one call with its gradient", "square of an error", "until the first result", "`map` of 256", "width 8")
    for row in (*[f"| {head} |" for head in heads], "| chain | "):
        assert row in text
        assert row in page.read_text()
    assert picture.read_text().startswith("<?xml")


def test_a_formula_that_differs_is_not_timed(monkeypatch):
    class Process:
        def submit(self, _, peer, name):
            return self

        def result(self):
            return next(answers)

    answers = iter([(1.0, [2.0], 0.1), (1.0, [2.1], 0.1)])
    with pytest.raises(SystemExit, match=r"native differs from the engine by 5\.0e-02"):
        formulas.one_call("arm of 7 joints", {"engine": Process(), "native": Process()}, 1)


@pytest.mark.parametrize("name", recurring.BY_HAND)
def test_a_recurrence_by_hand_is_the_engines(name):
    made = recurring.PROGRAMS[name]()
    want = recurring.by_engine(made)
    for way, (_, read) in recurring.by_hand(name, made).items():
        timing.agree(way, read(), want, recurring.CLOSE)


def test_the_tables_of_recurrences(capsys, monkeypatch):
    monkeypatch.setattr(timing, "SECONDS", 1e-4)
    monkeypatch.setenv("WENGERT_CACHE", "")  # and put back behind it
    assert recurring.main(["--only", "euler", "--rounds", "1", "--no-xla"]) == 0
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| euler |")]
    assert len(rows) == len(recurring.HEADS)


def test_a_row_of_long_runs(monkeypatch):
    monkeypatch.setattr(timing, "SECONDS", 1e-4)
    monkeypatch.setattr(long_runs, "MOST", 400)
    steps, length, taken, ratio, memory = long_runs.row(800, 100, 1)
    assert (steps, length, taken[-3:], memory[-3:]) == ("800", "100", " ms", " MB")
    assert float(ratio) > 0.0


def test_what_differs_is_not_timed():
    timing.agree("native differs", (1.0, [2.0]), (1.0, [2.0 + 1e-15]), 1e-12)
    with pytest.raises(SystemExit, match=r"euler: native differs from the engine by 5\.0e-02"):
        timing.agree("euler: native differs from the engine", (1.0, [2.1]), (1.0, [2.0]), 1e-12)


@pytest.mark.nightly
def test_calls_of_the_collection(capsys, monkeypatch, tmp_path):
    pytest.importorskip("llvmlite", reason="they are pinned to machine code")
    names = ["statistics.linear_regression", "misuse.the_same_list_twice", "misuse.printing"]
    monkeypatch.setattr(calls, "collection", lambda: names)
    page, record = tmp_path / "page.md", tmp_path / "found.json"
    page.write_text("<!-- calls: begin -->\n<!-- calls: end -->\n")
    options = ["distributions", "--sample", "3", "--all", "--record", str(record), "--page", str(page)]
    assert calls.main([*options, "--against", str(collected.ROOT)]) == 0
    text = capsys.readouterr().out
    found = json.loads(record.read_text())
    assert list(found) == ["this", collected.ROOT.name]
    for title, programs in found.items():
        assert sorted(programs) == sorted(names)
        for which in collected.GROUPS[:2]:
            assert f"| auto, {title} | {which} | 1 |" in page.read_text()
        assert f"The slowest of one call by native, {title}:" in text
    assert "misuse.the_same_list_twice: " in text
    made = found["this"]["statistics.linear_regression"]["call"]["native"]
    assert (made["calls"], made["ways"], made["recorded"], made["why"]) == (96, 1, False, [])


def test_a_program_of_few_operations_is_counted_and_not_timed():
    found = collected.measured("misuse.the_same_list_twice", collected.FEW)
    assert collected.MODES.keys().isdisjoint(found)
    assert "| any | fewer operations, not timed | 1 |" in collected.distributions({"this": {"a": found}})


def test_a_program_that_differs_or_hangs_is_counted_and_not_timed(monkeypatch):
    monkeypatch.setattr(trial.wengert, "compile", lambda function, **_: lambda *given: function(*given) * 2.0)
    found = {"this": {"a": collected.measured("physics.damped_pendulum", 0), "b": {"failed": "hung"}}}
    assert "| any | failed, not timed | 2 |" in collected.distributions(found)
    assert "failed, this: a: call on set 0, result: expected" in collected.worst(found)
    assert "failed, this: b: hung" in collected.worst(found)


def test_what_is_beyond():
    plain = {"settled": 1e-6, "mean": 2e-6}
    some = [
        {"plain": plain, "auto": {"settled": s, "mean": m, "recorded": False}} for s, m in ((1e-6, 3e-6), (2e-6, 4e-6))
    ]
    assert collected.row(some, "auto") == ["2", "1.5", "1.9", "1", "1.75", "1.95", "1", "1"]
    assert calls.fast_from([9.0, 9.0, 1.0, 9.0, 1.0, 1.0, 1.0], 1.0) == "3"
    assert calls.fast_from([9.0] * 7, 1.0) == "not in 7"
    assert calls.in_all({"times": [3.0] + [1.0] * 9}) == 402.0


@pytest.mark.parametrize("name", calls.TASKS)
def test_all_of_a_program_counts(name):
    function, parameters = calls.written(name)
    result = function(*calls.examples(name, 1)[0])
    result.backward()
    assert all(p.grad != 0.0 for p in parameters)
    if "irregular" in name:
        assert 0 <= len(Graph(result)) - int(name.split()[0].replace(",", "")) < 10


@pytest.mark.filterwarnings("ignore:.*fork")  # JAX, where another test has loaded it
def test_the_tables_of_calls(capsys, monkeypatch):
    pytest.importorskip("llvmlite", reason="they are pinned to machine code")
    monkeypatch.setattr(timing, "SECONDS", 1e-4)
    monkeypatch.setattr(calls, "COLD", 12)
    monkeypatch.setattr(calls, "ROUNDS", 1)
    monkeypatch.setattr(calls, "PEERS", calls.WENGERT)
    assert calls.main(["table", "--only", "MLP 2-8-1"]) == 0
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| MLP 2-8-1 | 91 |")]
    assert [row.split("|")[3].strip() for row in rows] == ["1", "64"] * 2


def test_a_named_program_that_differs_is_not_timed(monkeypatch):
    answers = iter([calls.Way(lambda: None, lambda _, x=x: (1.0, [x])) for x in (2.0, 2.1)])
    monkeypatch.setattr(calls, "by_wengert", lambda *_: next(answers))
    monkeypatch.setenv("WENGERT_CACHE", "")  # and put back behind it
    with pytest.raises(SystemExit, match=r"MLP 2-8-1: auto differs by 5\.0e-02"):
        calls.raced("auto", "MLP 2-8-1", 1)


SMALL = {
    "fit": lambda: engineering.Fit(20),
    **{f"{what} of control": lambda what=what: engineering.Control(what, 2) for what in ("Jacobian", "Hessian")},
    **{
        what: lambda what=what: engineering.Rosenbrock(what, 5)
        for what in ("gradient", "hvp", "Hessian", "sparse Hessian")
    },
    **{
        f"constrained {what}": lambda what=what: engineering.LuksanVlcek(what, 6)
        for what in ("gradient", "hvp", "sparse Hessian")
    },
    "option": lambda: engineering.Greeks(1),
    "options": lambda: engineering.Greeks(3),
    "posterior": lambda: engineering.Posterior(7, 3),
    "likelihood": lambda: engineering.Garch("value and gradient", 6),
    "its Hessian": lambda: engineering.Garch("Hessian", 6),
    "arm": lambda: engineering.Arm("Jacobian"),
    "arms": lambda: engineering.Arm("Jacobian", 3),
    "Lorenz": lambda: engineering.Lorenz(10),
    "bundle": lambda: engineering.Bundle(3),
    "inverse kinematics": lambda: engineering.Arm("inverse"),
    "cameras": lambda: physics.Cameras(2, 3),
    "orbit": lambda: physics.Orbit(3),
    "neural ODE": lambda: physics.NeuralOde(3, 4),
    "reactor": lambda: physics.Hires(1),
    "reactors": lambda: physics.Hires(3),
    "truss": lambda: physics.Truss(3),
    "heat": lambda: physics.Heat(4),
    "cluster": lambda: physics.Cluster(4),
    "fluid": lambda: physics.Fluid(3),
    "logistic": lambda: estimation.Logistic(9, 3),
    "Kalman": lambda: estimation.Kalman(6),
    "Markov": lambda: estimation.Markov(4, 2),
    "Gaussian process": lambda: estimation.Process(4),
    "gamma": lambda: estimation.Gamma(9),
    "yields": lambda: estimation.Yields(3),
}


def results(task, way):
    """The numbers of a task's result; None if a tool has no text for it."""
    try:
        made = derivatives.WAYS[way][1](task)
    except NotImplementedError:
        return None
    return made.read(made.call())


@pytest.mark.sampled(4)  # whoever measures has them compared before
@pytest.mark.parametrize("name", SMALL)
def test_derivatives_are_those_of_peers(name):
    pytest.importorskip("casadi", reason="a peer")
    pytest.importorskip("scipy", reason="a peer")
    task = SMALL[name]()
    way = derivatives.by_wengert(task)
    first, *later = [way.read(way.call()) for _ in range(3)]
    assert derivatives.apart(later[1], later[0]) == 0.0
    found = [results(task, peer) for peer in ("CasADi", "CasADi, buffers", "by hand")]
    wanted = [want for want in found if want is not None]
    assert len(wanted) >= 1
    for want in wanted:
        assert max(derivatives.apart(first, want), derivatives.apart(later[0], want)) < 1e-12


SPARSE = [name for name, make in SMALL.items() if "asdex" in vars(type(make())) and "sparse" in make().title]


@pytest.mark.slow
@pytest.mark.jax
@pytest.mark.sampled(40)  # JAX compiles each for a second
@pytest.mark.parametrize(("way", "name"), [*[("JAX", name) for name in SMALL], *[("JAX, asdex", n) for n in SPARSE]])
def test_derivatives_are_those_of_jax(way, name):
    pytest.importorskip("jax" if way == "JAX" else "asdex", reason="a peer")
    task = SMALL[name]()
    assert derivatives.apart(results(task, "Wengert"), results(task, way)) < 1e-12


def test_all_tasks_are_tried_small():
    assert {type(make()) for make in derivatives.TASKS.values()} == {type(make()) for make in SMALL.values()}


def test_results_that_differ_are_seen():
    from scipy.sparse import csr_array

    dense = np.array([[1.0, 0.0], [0.0, 2.0]])
    assert derivatives.apart(csr_array(dense), dense.ravel()) == 0.0
    assert derivatives.apart(dense.ravel(), csr_array(dense + 0.5)) == 0.2
    assert derivatives.apart(csr_array(dense), np.zeros(3)) == math.inf
    assert derivatives.apart(np.zeros(3), np.zeros(4)) == math.inf


def test_the_tables_of_derivatives(capsys, monkeypatch, tmp_path):
    pytest.importorskip("scipy", reason="a peer")
    monkeypatch.setattr(timing, "SECONDS", 1e-4)
    monkeypatch.setattr(derivatives, "CALLS", 5)
    monkeypatch.setattr(derivatives, "TASKS", SMALL)
    monkeypatch.setattr(derivatives, "cold", derivatives.first)
    monkeypatch.setattr(derivatives, "begin", lambda: None)
    monkeypatch.setattr(derivatives, "NATURAL", ("by hand",))
    monkeypatch.setattr(derivatives, "AT_BEST", ("by hand",))
    ways = {way: derivatives.WAYS[way] for way in ("by hand", "Wengert")}
    monkeypatch.setattr(derivatives, "WAYS", ways | {"nobody": ("no_such_module", None)})
    page = tmp_path / "page.md"
    page.write_text("<!-- derivatives: begin -->\n<!-- derivatives: end -->\n")
    options = ["--rounds", "1", "--page", str(page), "--report", "--profile"]
    assert derivatives.main(["--only", "gradient", "--only", "arm", *options]) == 0
    text = capsys.readouterr().out
    assert "value, one example" in text
    assert "100 calls:" in text
    written = page.read_text()
    assert "of the time of the best peer's in the geometric mean of 1 tasks" in written
    rows = [line.split(" | ") for line in written.splitlines() if line.startswith("| Rosenbrock, 5")]
    assert rows[0][-1] == "not installed |"
    assert "10 µs " in rows[0][2]
    assert "" not in rows[0]
    assert rows[2][1] == "3"

    def hand(task):
        return (lambda q: [[2.0] * 7] * 12), (None,)

    monkeypatch.setattr(engineering.Arm, "hand", hand)
    assert derivatives.main(["--only", "arm", "--rounds", "1"]) == 1
    assert "**wrong by " in capsys.readouterr().out


def test_lines_are_counted():
    task = engineering.Rosenbrock("hvp", 5)
    assert lines.lines(task, "wengert") == 3  # the call, and the function with its `def`
    assert lines.lines(engineering.Rosenbrock("gradient", 5), "wengert") == 3
    assert lines.lines(task, "hand") == 1
    with_helpers = lines.lines(engineering.Fit(20), "wengert")
    assert with_helpers == 1 + 9 + 3 + 6  # the residuals, a step, and the method of Runge and Kutta


@pytest.mark.parametrize("stages", [1, pytest.param(2, marks=pytest.mark.nightly)])
def test_the_control_problem_is_solved_alike(stages):
    pytest.importorskip("casadi", reason="a peer")
    pytest.importorskip("scipy", reason="a solver")
    text, differs = solving.solved(stages)
    assert not differs
    rows = [line for line in text.splitlines() if "trust-constr" in line]
    assert [row.split(" | ")[1] for row in rows] == ["CasADi", "Wengert"]


@pytest.mark.plot
def test_costs_by_size_are_drawn(monkeypatch, tmp_path):
    pytest.importorskip("matplotlib")
    pytest.importorskip("scipy", reason="Wengert's sparse matrices are SciPy's")
    monkeypatch.setattr(sizes, "ProcessPoolExecutor", lambda *_: ThreadPoolExecutor(1))
    monkeypatch.setattr(sizes, "SECONDS", 0.0)
    monkeypatch.setattr(sizes, "STYLE", {"Wengert": sizes.STYLE["Wengert"]})
    picture = tmp_path / "sizes.svg"
    text = sizes.drawn(picture, 100)
    task = engineering.LuksanVlcek("gradient", 100)
    counted = len(Graph(task.lagrangian([Value(x) for x in task.x], list(task.multipliers)))) - 100
    assert f"| Wengert | 100 | {counted:,} |" in text
    assert "prefers-color-scheme: dark" in picture.read_text()


def test_until_calls_are_settled(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(derivatives.time, "perf_counter", lambda: now[0])
    taken = iter([3.0, 0.5, 0.5, *[0.01] * 400])

    def call():
        now[0] += next(taken)

    assert derivatives.settle(call) == (2, 3.5)  # the third is slow, but most after it are not
    assert derivatives.against(1.0, 2.0) == "2 s ✓"
    assert derivatives.against(2.1, 2.0) == "**2 s ✗**"


def test_a_c_compiler_that_takes_too_long_is_a_cell(monkeypatch, tmp_path):
    pytest.importorskip("casadi", reason="a peer")
    compiler = tmp_path / "gcc"
    compiler.write_text("#!/bin/sh\nsleep 60\n")
    compiler.chmod(0o755)
    monkeypatch.setattr(derivatives.shutil, "which", lambda name: str(compiler))
    monkeypatch.setattr(engineering.Rosenbrock, "patience", 0.01)
    with pytest.raises(derivatives.AbsentError, match="gcc takes more than 0 s"):
        derivatives.by_casadi(engineering.Rosenbrock("gradient", 3), compiled=True)
    monkeypatch.setattr(derivatives.shutil, "which", lambda name: None)
    with pytest.raises(derivatives.AbsentError, match="no gcc"):
        derivatives.by_casadi(engineering.Rosenbrock("gradient", 4), compiled=True)


def test_what_the_page_says_first_is_what_its_tables_hold():
    page = (Path(__file__).resolve().parent.parent / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    said, _, tables = page.partition("## Training steps")
    figures = re.findall(r"\b(\d[\d.]* (?:ns|µs|ms|s))\b", said) + [f"({n}x)" for n in re.findall(r"(\d+) times", said)]
    assert len(figures) >= 11
    assert [figure for figure in figures if figure not in tables] == []


def test_plain_functions_are_given_to_each_library_as_they_are(monkeypatch):
    for peer in ("autograd", "jax", "torch"):
        pytest.importorskip(peer, reason="a peer")
    monkeypatch.setattr(timing, "SECONDS", 1e-4)
    text = plain_functions.times(["formula", "pendulum", "valley"], 1)
    assert "Wengert differentiates 3 of 3, HIPS autograd 1, JAX 1, PyTorch 1." in text
    formula, pendulum, valley, *rewritten = [line for line in text.splitlines() if line.count("x) |") > 1]
    assert "must be real number" in formula
    assert "**wrong**, and nothing says so: [1.0, 2.0, -1.71]" in pendulum
    assert valley.count("x) |") == 5
    assert [line.count("x) |") for line in rewritten] == [6, 6, 6]


def test_the_page_counts_functions_that_there_are():
    functions = {name for of in plain_functions.groups().values() for name in of}
    assert plain_functions.BEFORE.keys() <= functions
    page = (Path(__file__).parents[1] / "docs" / "derivatives.md").read_text(encoding="utf-8")
    (counts,) = re.findall(r"^\| all \| (\d+) \| (\d+) \| (\d+) \|", page, re.MULTILINE)
    assert counts[0] == counts[1] == counts[2]
    assert 60 < int(counts[0]) <= len(functions)
