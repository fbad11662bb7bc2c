"""Scenarios of arrays and of what other libraries keep: NumPy in all its forms, scikit-learn, PyTorch, SciPy, SymPy."""

from __future__ import annotations

import numpy as np

import wengert
from tests.scenarios.kit import attempt, scenario
from wengert import Value


@scenario
def array_edited_in_place_and_replaced(compile):
    table, w = np.array([1.0, 2.0, 3.0]), Value(0.5)
    f = compile(lambda x: w * x * table[1] + float(table.sum()))
    for call in range(1, 22):
        if call == 6:
            table[1] = -2.0
        if call == 12:
            table *= 0.5
        if call == 18:
            table = np.array([9.0, 8.0, 7.0, 6.0])
        yield f.mean([0.1 * call + 0.05 * k for k in range(64)]), w


@scenario
def view_of_an_array_edited_through_its_base(compile):
    base, w = np.arange(12.0).reshape(3, 4), Value(1.0)
    column = base[:, 2]
    f = compile(lambda xs: w * sum(c * x for c, x in zip(column, xs)))
    for call in range(1, 20):
        if call == 6:
            base[1, 2] = 60.0
        if call == 12:
            base.fill(1.0)
        yield f([0.1 * call, 1.0, -1.0]), w


@scenario
def strides_backwards_and_transposed(compile):
    grid, w = np.arange(6.0).reshape(2, 3), Value(0.5)
    backwards, turned = grid[::-1, ::2], grid.T
    f = compile(lambda x: w * x * backwards[0, 1] + turned[2, 0] * x)
    for call in range(1, 18):
        if call == 6:
            grid[1, 2] = -8.0
        if call == 12:
            turned[2, 0] = 4.0
        yield f(0.3 * call), w
        yield f.map([0.3 * call + 0.3 * k for k in range(9)])


@scenario
def zero_dimensional_array_as_a_rate(compile):
    rate, w = np.array(0.5), Value(1.0)
    f = compile(lambda x: w * x * rate[()] + float(rate))
    for call in range(1, 18):
        if call == 6:
            rate[...] = 2.0
        if call == 12:
            rate += 1.0
        yield f(0.1 * call), w
        yield f.map([0.1 * call + 0.3 * k for k in range(9)])


@scenario
def read_only_array_over_a_writeable_one(compile):
    data = np.array([1.0, 2.0])
    view, w = data.view(), Value(1.0)
    view.flags.writeable = False
    f = compile(lambda x: w * x * view[0] + view[1])
    for call in range(1, 16):
        if call == 6:
            data[0] = 11.0
        yield f(0.1 * call), w


@scenario
def structured_array_by_field(compile):
    rows, w = np.array([(1, 0.5), (2, 1.5)], dtype=[("n", "i4"), ("gain", "f8")]), Value(1.0)
    f = compile(lambda x: w * x * rows["gain"][0] + int(rows[1]["n"]))
    for call in range(1, 18):
        if call == 6:
            rows["gain"][0] = 6.0
        if call == 12:
            rows[1]["n"] = 20
        yield f(0.2 * call), w


@scenario
def record_array_by_attribute(compile):
    rows, w = np.rec.array([(1.0, 2.0), (3.0, 4.0)], names="low,high"), Value(1.0)
    f = compile(lambda x: w * x * rows.low[1] + rows[0].high)
    for call in range(1, 18):
        if call == 6:
            rows.low[1] = -3.0
        if call == 12:
            rows.high[0] = 100.0
        yield f(0.1 * call), w


@scenario
def object_array_of_values_with_one_replaced(compile):
    a, b, c = Value(1.0), Value(2.0), Value(5.0)
    weights = np.array([a, b], dtype=object)
    f = compile(lambda x: (weights * np.array([x, x * x])).sum())
    for call in range(1, 18):
        if call == 6:
            weights[0] = c
        if call == 12:
            weights[:] = weights[::-1].copy()
        yield f.mean([0.2 * call + 0.05 * k for k in range(64)]), a, b, c


@scenario
def boolean_mask_array_that_flips(compile):
    mask, w = np.array([True, False, True]), Value(1.0)
    weights = np.array([1.0, 10.0, 100.0])
    f = compile(lambda x: w * x * float(weights[mask].sum()) + mask.sum())
    for call in range(1, 18):
        if call == 6:
            mask[1] = True
        if call == 12:
            mask ^= True
        yield f.mean([0.1 * call + 0.01 * k for k in range(64)]), w


@scenario
def integer_array_as_a_permutation(compile):
    order, w = np.array([2, 0, 1]), [Value(1.0), Value(2.0), Value(3.0)]
    f = compile(lambda xs: sum(w[k] * x for k, x in zip(order, xs)))
    for call in range(1, 18):
        if call == 6:
            order[[0, 1]] = order[[1, 0]]
        if call == 12:
            order[:] = np.arange(3)
        yield f([0.1 * call, 1.0, -2.0]), w


@scenario
def masked_array_whose_mask_moves(compile):
    data, w = np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0]), Value(1.0)
    f = compile(lambda x: w * x * float(data.mean()))
    for call in range(1, 16):
        if call == 6:
            data.mask = [0, 0, 1]
        if call == 12:
            data[0] = 50.0
        yield f(0.1 * call), w


@scenario
def matrix_of_integers_and_its_type(compile):
    table, w = np.array([[1, 2], [3, 4]]), Value(0.5)
    f = compile(lambda x: w * x * table[1, 0] // 1 + table.dtype.itemsize if x < 0 else w * x * int(table[1, 0]))
    for call in range(1, 18):
        if call == 6:
            table[1, 0] = 30
        if call == 12:
            table = table.astype(np.float32) + 0.5
        yield f(0.2 * call), w


@scenario
def features_standardised_by_captured_moments_in_batches(compile):
    mean, spread = np.array([0.0, 1.0]), np.array([1.0, 2.0])
    a, b = Value(0.5), Value(-0.3)

    def score(x):
        z = (x - mean) / spread
        return wengert.sigmoid(a * z[0] + b * z[1])

    f = compile(score)
    rows = np.linspace(-1.0, 1.0, 128).reshape(64, 2)
    for call in range(1, 14):
        if call == 6:
            mean += 0.5
        if call == 7:
            spread[1] = 0.25
        yield f.mean(rows * call), a, b
        yield f.map(rows[:9])


@scenario
def log_posterior_over_captured_data_that_is_swapped(compile):
    X = np.linspace(-1.0, 1.0, 30).reshape(10, 3)
    y = X @ np.array([1.0, -2.0, 0.5])
    theta = [Value(0.1), Value(0.2), Value(0.3)]

    def posterior(scale):
        total = 0.0
        for row, target in zip(X, y):
            total = total - (sum(t * r for t, r in zip(theta, row)) - target) ** 2
        return total * scale

    f = compile(posterior)
    for call in range(1, 20):
        if call == 6:
            y[3] += 5.0
        if call == 12:
            X, y = X[::-1].copy(), y * 2.0
        yield f(0.1 * call), theta


@scenario
def numpy_where_over_an_argument_with_a_threshold_outside(compile):
    threshold, w = [0.0], Value(2.0)
    f = compile(lambda x: w * np.where(x > threshold[0], x, 0.1 * x).sum())
    for call in range(1, 18):
        if call == 6:
            threshold[0] = 0.4
        if call == 12:
            threshold[0] = -10.0
        yield f(np.array([0.1 * call, -0.5, 0.5, 1.0])), w


@scenario
def error_state_of_numpy(compile):
    w, divisor = Value(1.0), np.array([1.0, 2.0])
    f = compile(lambda x: w * x + float((np.array([1.0, 1.0]) / divisor)[0] > 3.0))
    for call in range(1, 18):
        if call == 6:
            divisor[0] = 0.0
        with np.errstate(divide="raise" if call in (6, 7, 12) else "ignore"):
            yield attempt(f, 0.1 * call), w


@scenario
def polynomial_object_of_numpy(compile):
    held, w = [np.polynomial.Polynomial([1.0, 2.0])], Value(0.5)
    f = compile(lambda x: w * held[0](x))
    for call in range(1, 18):
        if call == 6:
            held[0].coef[1] = -4.0
        if call == 12:
            held[0] = held[0].deriv()
        yield f(0.2 * call), w


@scenario
def generator_of_numpy_is_held(compile):
    rng, w = np.random.default_rng(5), Value(1.0)
    f = compile(lambda x: w * x + rng.normal())
    for _ in range(1, 15):
        yield f(0.5), w
    yield float(rng.normal())


@scenario
def random_state_of_numpy_made_inside_from_a_seed(compile):
    seed, w = [3], Value(1.0)

    def value(x):
        noise = np.random.RandomState(seed[0]).uniform(size=3)
        return w * x * float(noise.sum())

    f = compile(value)
    for call in range(1, 16):
        if call == 6:
            seed[0] = 4
        yield f(0.1 * call), w


@scenario
def subclass_of_an_array_with_an_attribute(compile):
    class Signal(np.ndarray):
        rate = 1.0

    signal, w = np.array([1.0, 2.0]).view(Signal), Value(1.0)
    f = compile(lambda x: w * x * signal.rate + float(signal[1]))
    for call in range(1, 18):
        if call == 6:
            signal.rate = 44.1
        if call == 12:
            signal[1] = -2.0
        yield f(0.1 * call), w


@scenario
def flat_iterator_and_nditer_of_what_is_outside(compile):
    grid, w = np.arange(4.0).reshape(2, 2), Value(1.0)
    f = compile(lambda x: w * x * sum(float(v) for v in np.nditer(grid)) + float(grid.flat[3]))
    for call in range(1, 16):
        if call == 6:
            grid[0, 0] = 7.0
        if call == 12:
            grid.flat[3] = -1.0
        yield f(0.3 * call), w


@scenario
def memory_map_written_elsewhere(compile):
    import tempfile

    with tempfile.NamedTemporaryFile() as file:
        mapped = np.memmap(file.name, dtype=float, mode="w+", shape=(3,))
        mapped[:] = [1.0, 2.0, 3.0]
        other, w = np.memmap(file.name, dtype=float, mode="r+", shape=(3,)), Value(1.0)
        f = compile(lambda x: w * x * float(mapped[1]))
        for call in range(1, 16):
            if call == 6:
                other[1] = -20.0
            yield f(0.1 * call), w


@scenario(needs="sklearn")
def scaler_that_is_fitted_again(compile):
    from sklearn.preprocessing import StandardScaler

    scaler, w = StandardScaler().fit([[0.0], [2.0]]), Value(1.0)
    f = compile(lambda x: w * (x - float(scaler.mean_[0])) / float(scaler.scale_[0]))
    for call in range(1, 18):
        if call == 6:
            scaler.fit([[0.0], [10.0], [20.0]])
        if call == 12:
            scaler.mean_ = np.array([-5.0])
        yield f(0.2 * call), w
        yield f.map([0.2 * call + 0.1 * k for k in range(9)])


@scenario(needs="sklearn")
def linear_model_as_a_teacher_in_a_map(compile):
    from sklearn.linear_model import LinearRegression

    teacher, w = LinearRegression().fit([[0.0], [1.0]], [1.0, 3.0]), Value(0.5)
    f = compile(lambda x: (w * x - (float(teacher.coef_[0]) * x + float(teacher.intercept_))) ** 2)
    for call in range(1, 14):
        if call == 6:
            teacher.coef_[0] = -1.0
        if call == 7:
            teacher.fit([[0.0], [1.0]], [0.0, 10.0])
        yield f.map([0.1 * k * call for k in range(9)])
        yield f.mean([0.1 * k for k in range(64)]), w


@scenario(needs="sklearn")
def hyperparameter_of_an_estimator_set_by_set_params(compile):
    from sklearn.linear_model import Ridge

    ridge, w = Ridge(alpha=1.0), Value(2.0)
    f = compile(lambda x: (w * x - 1.0) ** 2 + ridge.alpha * w * w)
    for call in range(1, 18):
        if call == 6:
            ridge.set_params(alpha=0.1)
        if call == 12:
            ridge.alpha = 7.0
        yield f.mean([0.1 * call + 0.02 * k for k in range(64)]), w


@scenario(needs="torch")
def tensor_read_inside(compile):
    import torch

    gains, w = torch.tensor([1.0, 2.0], dtype=torch.float64), Value(1.0)
    f = compile(lambda x: w * x * gains[0].item() + float(gains.sum()))
    for call in range(1, 18):
        if call == 6:
            gains[0] = 5.0
        if call == 12:
            gains.mul_(-1.0)
        yield f(0.1 * call), w
        yield f.map([0.1 * call + 0.1 * k for k in range(9)])


@scenario(needs="torch")
def layer_of_torch_as_a_teacher(compile):
    import torch

    layer, w = torch.nn.Linear(1, 1).double(), Value(0.5)
    with torch.no_grad():
        layer.weight.fill_(2.0)
        layer.bias.fill_(-1.0)
    f = compile(lambda x: (w * x - layer.weight.tolist()[0][0] * x - layer.bias.item()) ** 2)
    for call in range(1, 18):
        if call == 6:
            with torch.no_grad():
                layer.bias.fill_(3.0)
        if call == 12:
            layer.weight = torch.nn.Parameter(torch.full((1, 1), 8.0, dtype=torch.float64))
        yield f(0.2 * call), w


@scenario(needs="sympy")
def formula_of_sympy_made_a_function(compile):
    import sympy

    x, k = sympy.symbols("x k")
    held, w = [sympy.lambdify((x, k), k * x**2 + 1, "math")], Value(0.5)
    f = compile(lambda t: held[0](t, w))
    for call in range(1, 18):
        if call == 6:
            held[0] = sympy.lambdify((x, k), sympy.diff(k * x**3, x), "math")
        if call == 12:
            held[0] = sympy.lambdify((x, k), x - k, [{"sin": wengert.sin}, "math"])
        yield f(0.2 * call), w


@scenario(needs="scipy")
def sparse_matrix_by_entry(compile):
    from scipy import sparse

    matrix, w = sparse.csr_matrix(np.array([[1.0, 0.0], [0.0, 2.0]])), Value(1.0)
    f = compile(lambda x: w * x * float(matrix[1, 1]))
    for call in range(1, 16):
        if call == 6:
            matrix.data[1] = -2.0
        if call == 12:
            matrix[1, 1] = 9.0
        yield f(0.2 * call), w


@scenario(needs="scipy")
def frozen_distribution_of_scipy(compile):
    from scipy import stats

    held, w = [stats.norm(0.0, 1.0)], Value(1.0)
    f = compile(lambda x: w * x * float(held[0].std()) + float(held[0].mean()))
    for call in range(1, 15):
        if call == 6:
            held[0] = stats.norm(1.0, 3.0)
        if call == 12:
            held[0].kwds = {}
            held[0].args = (2.0, 0.5)
        yield f(0.1 * call), w


@scenario(needs="pandas")
def series_by_label_and_query(compile):
    import pandas as pd

    rates, w = pd.Series({"slow": 0.1, "fast": 1.0}), Value(1.0)
    mode = ["slow"]
    f = compile(lambda x: w * x * float(rates[mode[0]]) + len(rates[rates > 0.5]))
    for call in range(1, 18):
        if call == 6:
            rates["slow"] = 0.7
        if call == 12:
            mode[0] = "fast"
        yield f(0.1 * call), w
