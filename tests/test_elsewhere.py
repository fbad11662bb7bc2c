"""What is written in other libraries is answered by what is written here, and that works."""

from __future__ import annotations

import contextlib
import copy
import io
import itertools
import pickle
import random
import re
import sys
from pathlib import Path
from typing import Any

import pytest

import wengert
from wengert import Graph, Value, engine, losses, nn, optim
from wengert.errors import ArgumentError, Elsewhere, KeywordError, OperandError, slips

np = pytest.importorskip("numpy")

NORMALIZED = """
m = wengert.mean(xs); s = (wengert.mean([(x - m) ** 2 for x in xs]) + 1e-5).sqrt(); xs = [(x - m) / s for x in xs]
assert abs(sum(xs).data) < 1e-12 and abs(sum(x * x for x in xs).data - 2.0) < 1e-4
"""
ATTENTION = """
q, ks, vs = xs, [xs, xs], [[x, 1.0], [x, 3.0]]
shares = wengert.softmax([wengert.dot(q, k) for k in ks])
assert [wengert.dot(shares, column).data for column in zip(*vs)] == [x.data, 2.0]
"""
RECURRENT = """
nin, n, h = 2, 3, [0.0, 0.0, 0.0]
cell = nn.Layer(nin + n, n, "tanh")
for row in [[1.0, 2.0], [3.0, 4.0]]: h = cell([*row, *h])
sum(h).backward(); assert all(p.grad != 0.0 for p in cell.parameters())
"""
EMBEDDING = """
class Net(nn.Module):
    def __init__(self): self.table = [[Value(1.0), Value(2.0)], [Value(3.0), Value(4.0)]]
    def __call__(self, i): return self.table[i]
net = Net(); net(1)[0].backward()
assert [p.grad for p in net.parameters()] == [0.0, 0.0, 1.0, 0.0]
"""
LISTS = """
class Net(nn.Module):
    def __init__(self): self.parts, self.named = [nn.Neuron(2), Value(1.0)], {"b": Value(2.0)}
assert len(Net().parameters()) == 5
"""
SCIPY = """
import scipy.optimize, numpy as np
f = lambda x: (x[0] - 1.0) ** 2 + (x[1] - 2.0) ** 2
found = scipy.optimize.minimize(wengert.value_and_grad(f), np.zeros(2), jac=True, method="L-BFGS-B")
assert np.allclose(found.x, [1.0, 2.0])
"""
CONVOLUTION = """
w = [2.0]
ys = [wengert.dot(w, xs[i : i + len(w)]) for i in range(len(xs) - len(w) + 1)]
assert [y.data for y in ys] == [4.0, 8.0]
"""
DIVERGENCE = """
ps, qs = [0.5, 0.5], [0.5, 0.5]
assert wengert.sum([p * (wengert.log(p) - wengert.log(q)) for p, q in zip(ps, qs)]) == 0.0
"""
SECOND = "f = lambda x: x**3; assert wengert.grad(wengert.grad(f))(2.0) == 12.0; "
SECOND += "assert wengert.hessian(lambda xs: xs[0] ** 3)([2.0]) == [[12.0]]"
BATCH = "opt = optim.AdamW(model, weight_decay=0.01); losses.mse(model([1.0, 2.0]), 1.0).backward(); opt.step(); "
BATCH += "xs = [2.0 * x if random.random() < 0.5 else 0.0 for x in xs]; assert len(xs) == 2"

# what is written, a part of the message, and code that follows it
WRITTEN = [
    # calls
    ("y.backward(create_graph=True)", "write wengert.grad(f): wengert.grad(wengert.grad(f))(x), or wengert.he", SECOND),
    ("y.backward(1.0, True, True)", "write wengert.grad(f)", SECOND),
    ("Value(1.0, requires_grad=True)", "every Value has a gradient", "Value(1.0).backward()"),
    ("Value(1.0, dtype=float)", "leave it out", "Value(1.0)"),
    ("Value(1.0, name='x')", "write Value(2.0, label='x')", "assert Value(2.0, label='x').label == 'x'"),
    ("Value(1.0, lable='x')", "did you mean label?", "Value(1.0, label='x')"),
    ("Value(value=1.0)", "write Value(2.0)", "Value(2.0)"),
    ("Value(1.0, grad=1.0)", "x.grad = 1.0", "x.grad = 1.0"),
    (
        "Value(1.0, children=(x,))",
        "write Value(number, (a, b), '+')",
        "a = b = x; number = 4.0; Value(number, (a, b), '+')",
    ),
    ("optimizer.zero_grad(set_to_none=True)", "write zero_grad()", "optimizer.zero_grad()"),
    ("model.zero_grad(set_to_none=True)", "write zero_grad()", "model.zero_grad()"),
    ("optim.SGD(model, learning_rate=0.1)", "write lr for learning_rate", "optim.SGD(model, lr=0.1)"),
    ("optim.SGD(params=model, lr=0.1)", "write parameters for params", "optim.SGD(parameters=model, lr=0.1)"),
    ("optim.Adam(model, epsilon=1e-8)", "write eps for epsilon", "optim.Adam(model, eps=1e-8)"),
    ("optim.AdamW(model, b1=0.9)", "write betas=(0.9, 0.999)", "optim.AdamW(model, betas=(0.9, 0.999))"),
    ("optim.AdamW(model, amsgrad=True)", "leave it out", "optim.AdamW(model)"),
    ("optim.SGD(model, lr=0.1, momentun=0.9)", "did you mean momentum?", "optim.SGD(model, lr=0.1, momentum=0.9)"),
    ("nn.MLP(2, [1], dropout=0.5)", "write optim.AdamW(model, weight_decay=0.01)", BATCH),
    ("nn.MLP(2, [1], act='tanh')", "write activation for act", "nn.MLP(2, [1], activation='tanh')"),
    ("nn.Layer(2, 1, dtype=float)", "leave it out", "nn.Layer(2, 1)"),
    (
        "pow(x, 2, 5)",
        "write pow(int(v.data), n, m), or pow(v, n)",
        "v = x; n = 2; m = 5; pow(int(v.data), n, m); pow(v, n)",
    ),
    ("pow(2, x, 5)", "write pow(int(v.data), n, m), or pow(v, n)", "pow(2, x)"),
    # attributes of a Value
    ("x.sigmod()", "did you mean sigmoid?", "x.sigmoid()"),
    ("x.bakcward()", "did you mean backward?", "x.backward()"),
    ("x.backwards()", "did you mean backward?", "x.backward()"),
    ("x.requires_grad = True", "every Value has a gradient", "x.backward()"),
    ("del x.requires_grad", "every Value has a gradient", "x.backward()"),
    ("x.name = 'x'", "write x.label", "x.label = 'x'"),
    ("x.ln()", "write x.log()", "x.log()"),
    ("x.power(2)", "write x**2, or x.pow(2)", "x**2, x.pow(2)"),
    ("x.expit()", "write x.sigmoid()", "x.sigmoid()"),
    ("x.gradient", "write y.backward(), then x.grad; or wengert.grad(f)", "y.backward(); x.grad; wengert.grad(f)(2.0)"),
    ("y.children", "write x._prev, or wengert.Graph(x)", "assert y._prev == (x, x) and len(wengert.Graph(y)) == 2"),
    ("y.op", "write x._op", "assert y._op == '*'"),
    ("x.register_hook(print)", "read x.grad after y.backward()", "y.backward(); assert x.grad == 4.0"),
    ("x.detach_()", "write x.detach()", "assert x.detach().is_leaf"),
    ("x.double()", "leave it out", "x"),
    ("x.prod()", "write wengert.prod(values)", "assert wengert.prod(values).data == 4.0"),
    (
        "x.cumsum()",
        "list(itertools.accumulate(values))",
        "assert [v.data for v in itertools.accumulate(values)] == [2.0, 4.0]",
    ),
    (
        "x.std()",
        "wengert.mean([(v - m) ** 2",
        "m = wengert.mean(values); wengert.mean([(v - m) ** 2 for v in values]).sqrt()",
    ),
    ("x.draw()", "write wengert.draw(x)", "wengert.draw(x)"),
    # layers
    ("nn.BatchNorm1d(2)", "in the model's __call__: m = wengert.mean(xs); s = ", NORMALIZED),
    ("nn.LayerNorm(2)", "in the model's __call__: m = wengert.mean(xs); s = ", NORMALIZED),
    ("nn.Dropout(0.5)", "write optim.AdamW(model, weight_decay=0.01)", BATCH),
    ("nn.Dropout2d(0.5)", "write optim.AdamW(model, weight_decay=0.01)", BATCH),
    (
        "nn.Conv1d(1, 1, 2)",
        "wengert.dot(w, xs[i : i + len(w)])",
        CONVOLUTION,
    ),
    (
        "nn.MaxPool1d(2)",
        "wengert.max(xs[i : i + 2])",
        "assert [wengert.max(xs[i : i + 2]).data for i in range(0, len(xs), 2)] == [4.0]",
    ),
    (
        "nn.AvgPool1d(2)",
        "wengert.mean(xs[i : i + 2])",
        "assert [wengert.mean(xs[i : i + 2]).data for i in range(0, len(xs), 2)] == [3.0]",
    ),
    ("nn.Flatten()", "[x for row in rows for x in row]", "rows = [xs, xs]; [x for row in rows for x in row]"),
    ("nn.Identity()", 'write activation="linear"', 'nn.Layer(2, 2, activation="linear")'),
    ("nn.Dense(2, 2)", 'write Layer(nin, nout, "linear")', 'nn.Layer(2, 2, "linear")'),
    ("nn.LSTM(2, 3)", 'cell = Layer(nin + n, n, "tanh"), then for x in xs: h = cell([*x, *h])', RECURRENT),
    ("nn.GRUCell(2, 3)", 'cell = Layer(nin + n, n, "tanh"), then for x in xs: h = cell([*x, *h])', RECURRENT),
    ("nn.Embedding(2, 2)", "a list of lists of Values in an attribute", EMBEDDING),
    ("nn.MultiheadAttention(2, 1)", "wengert.softmax([wengert.dot(q, k) for k in ks])", ATTENTION),
    ("nn.ModuleList([])", "a list of Modules or Values in an attribute", LISTS),
    ("nn.ParameterDict({})", "a dict of Modules or Values in an attribute", LISTS),
    ("nn.Softmax(0)", "write wengert.softmax(values)", "wengert.softmax(values)"),
    ("nn.LogSoftmax(0)", "write wengert.log_softmax(values)", "wengert.log_softmax(values)"),
    ("nn.LeakyReLU()", 'activation="leaky_relu"', 'nn.MLP(2, [2, 2], activation="leaky_relu")'),
    ("nn.SiLU()", 'activation="silu"', 'nn.MLP(2, [2, 2], activation="silu")'),
    ("nn.NLLLoss()", "write losses.cross_entropy", "losses.cross_entropy(xs, 0)"),
    ("nn.SmoothL1Loss()", "write losses.huber", "losses.huber(x, 1.0)"),
    (
        "nn.KLDivLoss()",
        "wengert.log(p) - wengert.log(q)",
        DIVERGENCE,
    ),
    (
        "nn.init.xavier_uniform_",
        'weights="scaled"',
        'nn.Layer(2, 2, weights="scaled")\nfor p in model.parameters(): p.data = random.gauss(0, 0.1)',
    ),
    ("nn.utils.clip_grad_norm_", "optim.clip_grad_norm(model, 1.0)", "optim.clip_grad_norm(model, 1.0)"),
    # optimizers
    (
        "optim.RMSprop(model)",
        "write Adam(model, 0.01, betas=(0.0, 0.99))",
        "optim.Adam(model, 0.01, betas=(0.0, 0.99)).step()",
    ),
    (
        "optim.Adagrad(model)",
        "write Adam(model, 0.001); or a class derived from Optimizer, with its own _rule",
        "optim.Adam(model, 0.001)",
    ),
    ("optim.RAdam(model)", "write Adam(model, 0.001)", "optim.Adam(model, 0.001)"),
    ("optim.LBFGS(model)", "scipy.optimize.minimize(wengert.value_and_grad(f), x0, jac=True", SCIPY),
    ("optim.Momentum(model)", "write SGD(model, 0.1, momentum=0.9)", "optim.SGD(model, 0.1, momentum=0.9)"),
    ("optim.Nesterov(model)", "momentum=0.9, nesterov=True)", "optim.SGD(model, 0.1, momentum=0.9, nesterov=True)"),
    ("optim.StepLR(optimizer)", "SGD(model, lambda k: 0.99**k)", "optim.SGD(model, lambda k: 0.99**k).step()"),
    ("optim.clip_grad_value_(model, 1.0)", "clip_grad_norm(model, 1.0)", "optim.clip_grad_norm(model, 1.0)"),
    ("optimizer.backward(y)", "write loss.backward(), then optimizer.step()", "y.backward(); optimizer.step()"),
    ("optimizer.zerograd()", "did you mean zero_grad?", "optimizer.zero_grad()"),
    # models
    (
        "model.requires_grad_(False)",
        "write optimizer.freeze(part)",
        "optimizer.freeze(model.layers[0]); optimizer.unfreeze(model.layers[0])",
    ),
    ("model.half()", "leave this out", "model"),
    ("model.apply(print)", "for p in model.parameters(): p.data = ", "for p in model.parameters(): p.data = 0.5"),
    ("model.named_modules()", "model.layers; model.named_parameters()", "model.layers, model.named_parameters()"),
    ("model.register_buffer('k', x)", "set an attribute", "model.k = 2.0; assert len(model.parameters()) == 3"),
    (
        "model.add_module('k', x)",
        "set an attribute, as in self.w = Value(2.0)",
        "model.w = Value(2.0); assert len(model.parameters()) == 4",
    ),
    ("model.num_parameters", "write len(model.parameters())", "assert len(model.parameters()) == 3"),
    ("model.paramters()", "did you mean parameters?", "model.parameters()"),
    ("model.zero_grads()", "did you mean zero_grad?", "model.zero_grad()"),
    # drawings
    ("drawing.source", "write drawing.to_dot()", "assert drawing.to_dot().startswith('digraph {')"),
    ("drawing.pipe()", "write drawing.svg", "assert drawing.svg.startswith('<svg')"),
    ("drawing.body", "or wengert.Graph(y)", "assert len(wengert.Graph(y)) == 2"),
    ("drawing.attr(rankdir='TB')", "drawing.to_dot()", "drawing.to_dot()"),
    ("drawing.show()", "write drawing.view()", "assert callable(drawing.view)"),
    ("drawing.savefig('x.svg')", "write drawing.save('graph.svg')", "drawing.save(folder / 'graph.svg')"),
    # wengert itself
    ("wengert.inference_mode()", "write with wengert.no_grad():", "with wengert.no_grad(): x * x"),
    ("wengert.enable_grad()", "outside of wengert.no_grad()", "(x * x).backward(); assert x.grad == 4.0"),
    (
        "wengert.numpy",
        "import numpy as np, whose arrays of objects hold Values",
        "assert (np.array([x, y], dtype=object) * 2.0)[1].data == 8.0",
    ),
    ("wengert.random", "import random", "import random"),
    ("wengert.float32", "write wengert.Value(2.0)", "wengert.Value(2.0)"),
    ("wengert.ndarray", "write list[wengert.Value]", "list[wengert.Value]"),
    (
        "wengert.elementwise_grad(f)",
        "wengert.compile(wengert.grad(f)).map(X)",
        "X = [1.0, 2.0]; assert wengert.compile(wengert.grad(f)).map(X).tolist() == [2.0, 4.0]",
    ),
    ("wengert.linspace(0, 1, 10)", "[0.1 * i for i in range(10)]", "[0.1 * i for i in range(10)]"),
    (
        "wengert.einsum('i,i', xs, xs)",
        "write wengert.dot(ws, xs)",
        "ws = xs; wengert.dot(ws, xs); a = [xs]; b = [[1.0], [2.0]]; wengert.matmul(a, b)",
    ),
    (
        "wengert.lax.cond",
        "if, for and while of Python",
        "assert wengert.compile(lambda x: x if x > 0 else -x)(-1.0) == 1.0",
    ),
    (
        "wengert.functional.relu(x)",
        "wengert.relu(x), wengert.softmax(values), losses.mse(p, y)",
        "wengert.relu(x); losses.mse(x, 1.0)",
    ),
    ("wengert.gradcheck(f, [2.0])", "wengert.check_gradients(f, x)", "wengert.check_gradients(f, x)"),
    ("wengert.custom_vjp(f)", 'write wengert.op("name", value=..., partials=...)', "assert callable(wengert.op)"),
    ("wengert.cuda.is_available()", "wengert.compile(f, backend='xla')", "assert callable(wengert.compile)"),
]


def space(folder: Path) -> dict[str, Any]:
    """The names of WRITTEN."""
    x = Value(2.0)
    y, model = x * x, nn.MLP(2, [1])
    modules = {"wengert": wengert, "nn": nn, "optim": optim, "losses": losses, "Value": Value, "np": np}
    standard = {"random": random, "itertools": itertools}
    numbers = {"x": x, "y": y, "values": [x, x], "xs": [x, 2.0 * x], "f": lambda x: x * x}
    others = {"model": model, "optimizer": optim.SGD(model, 0.1), "folder": folder, "drawing": wengert.draw_dot(y)}
    return modules | standard | numbers | others


@pytest.mark.parametrize(("written", "words", "answer"), WRITTEN, ids=[written for written, *_ in WRITTEN])
def test_the_message_says_what_to_write(written: str, words: str, answer: str, tmp_path: Path) -> None:
    if written == "pow(2, x, 5)" and not engine.compiled and sys.version_info < (3, 14):
        words = "unsupported operand type(s) for ** or pow()"  # Python asks no `__rpow__` of a class written in it
    with pytest.raises((AttributeError, TypeError)) as caught:
        exec(written, space(tmp_path))
    assert words in str(caught.value)
    exec(answer, space(tmp_path))


def test_every_name_of_a_table_says_what_to_write() -> None:
    """Each is an AttributeError of its own name, is not found and not listed."""
    x, model = Value(2.0), nn.MLP(2, [1])
    count = 0
    for thing in (x, model, optim.SGD(model, 0.1), wengert.draw(x)):
        listed = set(dir(thing))
        for base in type(thing).__mro__:
            for name in [name for name, attribute in vars(base).items() if isinstance(attribute, Elsewhere)]:
                assert not hasattr(thing, name)
                assert name not in listed
                with pytest.raises(AttributeError, match=re.escape(f"has no attribute '{name}'") + "[:;] ") as caught:
                    getattr(thing, name)
                assert (caught.value.name, caught.value.obj) == (name, thing)
                count += 1
    assert count > 180


class Named:
    """A base with names that a Value answers by what to write."""

    size = 3

    def view(self) -> str:
        return f"view of {self.size}"

    @property
    def name(self) -> str:
        return getattr(self, "given", "none")

    @name.setter
    def name(self, given: str) -> None:
        self.given = given


def test_a_class_of_ones_own_may_have_the_names() -> None:
    class Mine(Value, Named):  # the names are those of a base behind Value
        def __init__(self, number: float, requires_grad: bool = False) -> None:
            super().__init__(number)
            self.requires_grad = requires_grad

    x = Mine(2.0, requires_grad=True)
    assert (x.requires_grad, x.size, x.view(), x.name) == (True, 3, "view of 3", "none")
    assert {"requires_grad", "size", "view", "name"} <= set(dir(x))
    x.name = "x"
    assert (x.name, vars(x)) == ("x", {"requires_grad": True, "given": "x"})
    assert copy.copy(x).requires_grad
    del x.requires_grad
    with pytest.raises(AttributeError, match="every Value has a gradient"):
        x.requires_grad  # noqa: B018
    with pytest.raises(AttributeError, match="every Value has a gradient"):
        del x.requires_grad

    class Asked(Value):
        def __getattr__(self, name: str) -> str:
            return f"asked for {name}"

    assert Asked(1.0).sigmod == "asked for sigmod"
    assert Asked(1.0).whatever == "asked for whatever"
    assert Asked(1.0).data == 1.0

    class Keyed(Value):
        def __init__(self, number: float, *, dtype: str) -> None:
            super().__init__(number)
            self.dtype = dtype

    assert Keyed(1.0, dtype="d").dtype == "d"

    class Plain(Value):
        pass

    with pytest.raises(KeywordError, match="Plain has no parameter dtype"):
        Plain(1.0, dtype="d")


def test_an_optimizer_of_ones_own_may_have_the_parameters() -> None:
    class Mine(optim.SGD):
        _settings = ("learning_rate",)

        def __init__(self, parameters: Any, learning_rate: float) -> None:
            super().__init__(parameters, learning_rate)
            self.learning_rate = learning_rate

    assert Mine([Value(1.0)], learning_rate=0.5).lr == 0.5

    class Same(optim.SGD):
        _settings = ("steps",)

    assert Same([Value(1.0)], lr=0.5, nesterov=True, momentum=0.5).nesterov
    with pytest.raises(KeywordError, match=r"Same has no parameter learning_rate: .*; write lr for learning_rate"):
        Same([Value(1.0)], learning_rate=0.5)  # type: ignore[call-arg]

    class Rule(optim.Optimizer):  # as the message about Adagrad says
        def __init__(self, parameters: Any, lr: float) -> None:
            super().__init__(parameters, lr, "square")

        def _rule(self, lr: float, x: Any, g: Any, *state: Any) -> tuple[Any, ...]:
            square = state[0] + g * g
            return x - lr * g / (square**0.5 + 1e-10), square

    torch = pytest.importorskip("torch")
    x, oracle = Value(2.0), torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    ours, theirs = Rule([x], 0.1), torch.optim.Adagrad([oracle], lr=0.1)
    for _ in range(5):
        for optimizer, y in ((ours, x * x), (theirs, oracle * oracle)):
            optimizer.zero_grad()
            y.backward()
            optimizer.step()
    assert x.data == pytest.approx(oracle.item(), rel=1e-12)


def test_adam_without_its_first_mean_is_rmsprop_with_its_bias_corrected() -> None:
    torch = pytest.importorskip("torch")
    x, oracle = Value(2.0), torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    ours = optim.Adam([x], 0.01, betas=(0.0, 0.99))
    theirs = torch.optim.RMSprop([oracle], lr=0.01, alpha=0.99)
    for k in range(1, 300):
        ours.zero_grad(), (x * x).backward(), ours.step()
        theirs.zero_grad(), (oracle * oracle).backward()
        theirs.param_groups[0]["lr"] = 0.01 * (1.0 - 0.99**k) ** 0.5  # the correction
        theirs.step()
    assert x.data == pytest.approx(oracle.item(), rel=1e-6)


def test_the_errors_are_what_python_raises_for_a_keyword() -> None:
    assert issubclass(KeywordError, TypeError)
    assert issubclass(KeywordError, ArgumentError)
    error = KeywordError("text")
    assert str(pickle.loads(pickle.dumps(error))) == "text"


def test_what_other_libraries_write_and_means_the_same_is_taken() -> None:
    x = Value(3.0)
    model = nn.MLP(2, [1])
    (x * x).backward(retain_graph=True, create_graph=False)
    assert x.grad == 6.0
    losses.mse(model([1.0, 2.0]), 3.0).backward()
    model.zero_grad(set_to_none=False)
    optim.SGD(model, 0.1).zero_grad(set_to_none=False)
    assert {p.grad for p in model.parameters()} == {0.0}
    assert pow(x, 2, None).data == 9.0
    assert pow(2.0, x, None).data == 8.0


def test_an_error_leaves_everything_as_it_was() -> None:
    x = Value(3.0)
    y = x * x
    y.backward()
    with pytest.raises(KeywordError):
        y.backward(create_graph=True)
    with pytest.raises(OperandError):
        pow(y, 2, 5)
    assert (x.grad, y.grad, len(Graph(y))) == (6.0, 1.0, 2)


METHODS = [name for name in dir(Value(1.0)) if not name.startswith("_") and callable(getattr(Value, name))]


def suggested(error: BaseException) -> str:
    """What Python writes when nobody catches it."""
    written = io.StringIO()
    with contextlib.redirect_stderr(written):
        sys.__excepthook__(type(error), error, error.__traceback__)
    return written.getvalue()


def test_python_suggests_a_method_for_each_misspelled_one() -> None:
    """By the names that `dir` lists: in a traceback that Python writes, whatever the slip."""
    x, near, far = Value(1.0), 0, []
    for method in METHODS:
        for slip in slips(method) if len(method) > 4 else ():
            if hasattr(x, slip):
                continue
            try:
                getattr(x, slip)
            except AttributeError as error:
                if re.search(rf"did you mean:? '?{method}'?\?", suggested(error), re.IGNORECASE):
                    near += 1
                else:
                    far.append((method, slip, suggested(error).splitlines()[-1]))
    assert all("id you mean" in said for *_, said in far), far  # another name that is near: acos for acoh
    assert near > 500
    assert len(far) < 0.2 * near


@pytest.mark.parametrize("method", ["backward", "detach", "relu", "sigmoid", "softplus", "sqrt", "tanh"])
def test_the_message_itself_suggests_the_methods_of_networks(method: str) -> None:
    """In a notebook, and wherever an error is caught and written, there is the message alone."""
    x = Value(1.0)
    missing = [slip for slip in slips(method) if not hasattr(x, slip)]
    assert len(missing) >= len(method)
    for slip in missing:
        with pytest.raises(AttributeError, match=rf"'Value' object has no attribute '{slip}'; did you mean \w+\?"):
            getattr(x, slip)


@pytest.mark.parametrize("function", [np.sin, np.tanh, np.log1p, np.square, wengert.sigmoid], ids=lambda f: f.__name__)
def test_a_derivative_of_a_function_of_numpy_is_compiled(function: Any) -> None:
    slope = wengert.compile(wengert.grad(function))
    for x in (0.5, 1.25, 2.0):
        assert slope(x) == pytest.approx((function(x + 1e-6) - function(x - 1e-6)) / 2e-6, rel=1e-8)
    assert slope.report().count("uncompiled") == 0


def test_what_is_not_there_cannot_be_deleted() -> None:
    with pytest.raises(AttributeError, match="every Value has a gradient"):
        del Value(1.0).requires_grad  # type: ignore[attr-defined]


def test_an_attribute_of_a_base_behind_value_is_deleted() -> None:
    deleted: list[Any] = []

    class Mixin:
        @property
        def requires_grad(self) -> str:
            return "mine"

        @requires_grad.deleter
        def requires_grad(self) -> None:
            deleted.append(self)

    class Mine(Value, Mixin):
        pass

    x = Mine(1.0)
    assert x.requires_grad == "mine"
    del x.requires_grad  # type: ignore[misc]
    assert len(deleted) == 1
    assert deleted[0] is x
