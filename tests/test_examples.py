"""The examples run, learn, and say what is wrong with a file."""

import os
import random
import subprocess
import sys
import threading
from importlib.util import find_spec

import pytest

from examples import names

pytestmark = pytest.mark.once  # what is tried are tools and pages, not an engine

NAMES = ["anna", "hannah", "nora", "ron", "aaron", "norah", "hanno", "a" * 30]


@pytest.mark.slow
def test_minimise_finds_the_chain(capsys):
    pytest.importorskip("scipy")
    from examples import minimise

    found = {method: minimise.hang(8, method) for method in ("L-BFGS-B", "BFGS", "Newton-CG")}
    assert all(abs(result.fun - found["BFGS"].fun) < 1e-4 for result in found.values())
    x, y = found["Newton-CG"].x[::2], found["Newton-CG"].x[1::2]
    assert x + x[::-1] == pytest.approx([1.0] * 7, abs=1e-3)  # it hangs evenly
    assert y == pytest.approx(y[::-1], abs=1e-3)
    forces = minimise.wengert.grad(minimise.energy)(found["BFGS"].x)
    assert max(abs(forces)) < 1e-3
    minimise.main(["--links", "4"])
    out = capsys.readouterr().out.splitlines()
    calls = {tuple(line.split()[:2]): int(line.split()[3]) for line in out[1:5]}
    assert calls["L-BFGS-B", "differences"] > 5 * calls["L-BFGS-B", "exact"]
    assert sum(line.count("o") for line in out[5:]) == 5
    with pytest.raises(SystemExit):
        minimise.main(["--links", "1"])
    assert "--links is 1; expected 2 or more" in capsys.readouterr().err


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "names.txt"
    path.write_text("\n".join(NAMES) + "\n\n")
    return path


@pytest.mark.slow
def test_names_learns_and_invents(file, capsys):
    names.main([str(file), "--steps", "30"])
    out = capsys.readouterr().out
    assert "8 names in 5 letters" in out
    assert "1 of them were cut to 15 letters" in out
    heading, _, listed = out.splitlines()[-1].partition(": ")
    drawn = listed.split(", ")
    assert len(drawn) == 12
    assert set("".join(drawn)) <= set("ahnor")
    assert heading == f"12 names drawn, {sum(name not in [*NAMES, 'a' * 15] for name in drawn)} of them not in the file"


@pytest.mark.slow
def test_names_loss_falls():
    model = names.GPT(5, random.Random(1))
    losses = names.train(model, [[5, 0, 2, 2, 0, 5]], 30)
    assert losses[0] == pytest.approx(1.8, abs=0.3)  # log 6, as if all tokens were equally likely
    assert losses[-1] < 0.5


@pytest.mark.slow
def test_names_compiled_is_names_by_the_engine():
    pytest.importorskip("numpy")
    tokens = [[5, 0, 2, 2, 0, 5], [5, 3, 4, 1, 5], [5, 1, 1, 3, 0, 5]]
    eager, compiled = (names.train(names.GPT(5, random.Random(1)), tokens, 12, eager=eager) for eager in (True, False))
    assert compiled == pytest.approx(eager, rel=1e-9)


@pytest.mark.slow
@pytest.mark.filterwarnings("error")  # a warning would say that it runs uncompiled
def test_names_says_what_has_trained(file, capsys):
    names.main([str(file), "--steps", "2", "--eager"])
    assert "s, by the engine" in capsys.readouterr().out
    names.main([str(file), "--steps", "2"])
    assert ("s, compiled" if find_spec("numpy") else "s, by the engine") in capsys.readouterr().out


@pytest.mark.slow
def test_names_is_reproducible(file, capsys):
    def printed():
        names.main([str(file), "--steps", "1", "--seed", "7"])
        return [line for line in capsys.readouterr().out.splitlines() if not line.startswith("trained in")]

    assert printed() == printed()


@pytest.mark.torch
def test_names_gradients_are_pytorchs():
    torch = pytest.importorskip("torch", reason="compares with PyTorch")
    model = names.GPT(5, random.Random(3))
    tokens = [5, 0, 1, 1, 4, 3, 5]
    loss = model.loss(tokens)
    loss.backward()
    matrix = {
        name: torch.tensor([[p.data for p in row] for row in rows], dtype=torch.float64, requires_grad=True)
        for name, rows in vars(model).items()
    }

    def rmsnorm(x):
        return x * ((x * x).mean(1, keepdim=True) + 1e-5) ** -0.5

    count = len(tokens) - 1
    x = rmsnorm(matrix["letter"][tokens[:-1]] + matrix["place"][:count])
    normed = rmsnorm(x)
    q, k, v = ((normed @ matrix[name].T).reshape(count, 4, 4).transpose(0, 1) for name in ("query", "key", "value"))
    hidden = torch.ones(count, count).triu(1).bool()
    weights = (q @ k.transpose(1, 2) / 2.0).masked_fill(hidden, -torch.inf).softmax(2)
    x = x + (weights @ v).transpose(0, 1).reshape(count, 16) @ matrix["out"].T
    x = x + (rmsnorm(x) @ matrix["up"].T).relu() @ matrix["down"].T
    expected = torch.nn.functional.cross_entropy(x @ matrix["head"].T, torch.tensor(tokens[1:]))
    expected.backward()
    assert loss.data == pytest.approx(expected.item(), rel=1e-12)
    for name, rows in vars(model).items():
        ours = torch.tensor([[p.grad for p in row] for row in rows], dtype=torch.float64)
        torch.testing.assert_close(ours, matrix[name].grad, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no names; expected one name a line"),
        (b"\n \n", "no names; expected one name a line"),
        (b"anna\nro\xff\n", "line 2: not UTF-8 text"),
        (b"\xef\xbb\xbfanna\nnora\nro\xff\n", "line 3: not UTF-8 text"),
    ],
)
def test_names_says_what_is_wrong_with_a_file(tmp_path, content, message):
    path = tmp_path / "names.txt"
    path.write_bytes(content)
    with pytest.raises(SystemExit, match=message):
        names.main([str(path)])


def test_names_takes_a_byte_order_mark_for_no_letter(tmp_path):
    path = tmp_path / "names.txt"
    path.write_bytes(b"\xef\xbb\xbfanna\r\nron\r\n")
    assert names.read_names(path) == (["anna", "ron"], 0)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs a named pipe")
def test_names_are_read_once(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(b"anna\nbob\nro\xff\n",))
    writer.start()
    with pytest.raises(SystemExit, match="line 3: not UTF-8 text"):
        names.read_names(path)
    writer.join()


def test_names_prints_on_a_console_without_its_letters(tmp_path):
    path = tmp_path / "names.txt"
    path.write_text("é\n", encoding="utf-8")
    command = [sys.executable, names.__file__, str(path), "--steps", "5"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "?" in done.stdout


def test_names_wants_a_file_and_a_step(tmp_path, file, capsys):
    with pytest.raises(SystemExit, match="No such file"):
        names.main([str(tmp_path / "none.txt")])
    with pytest.raises(SystemExit):
        names.main([str(file), "--steps", "0"])
    assert "--steps is 0; expected 1 or more" in capsys.readouterr().err
