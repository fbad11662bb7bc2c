"""Functions of floats that Python's `math` lacks: gamma, Bessel, normal functions, entropies, `math` after IEEE 754.

The functions from `where` on are rules like those of the table, which can run over any kind of number: names of rows
then mean these rows, `where` computes both of its sides, and `choose` only the side that is needed.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from math import cos, expm1, inf, nan, pi, sin, sqrt, tan
from typing import Any

from wengert.ops.ieee import divide as div
from wengert.ops.ieee import exp, log
from wengert.ops.ieee import power as pow_

__all__ = [
    "STIRLING",
    "atanh",
    "cbrt",
    "choose",
    "entr",
    "entr_slope",
    "erf",
    "erfc",
    "exact_product",
    "expm1",
    "floor",
    "gaussian",
    "gaussian_slope",
    "gelu",
    "gelu_slope",
]
__all__ += ["guarded", "j0", "j1", "j1_slope", "lgamma", "log1p", "logarithm", "mills", "norm", "norm_partials"]
__all__ += ["normal_cdf", "normal_pdf", "normal_pdf_slope", "normal_ppf", "polygamma", "polynomial", "quantile_slope"]
__all__ += ["remainder", "round_", "sign", "sinc", "sinc_slope", "to_multiple", "where", "xlog1py", "xlogy"]
__all__ += ["xlogy_slope"]

# B_2, B_4, ... B_26: the Bernoulli numbers, https://dlmf.nist.gov/24.2
BERNOULLI = [1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798]
BERNOULLI += [-174611 / 330, 854513 / 138, -236364091 / 2730, 8553103 / 6]
STIRLING = [b / (2 * k * (2 * k - 1)) for k, b in enumerate(BERNOULLI[:8], 1)]  # lgamma's series in 1 / x
BEYOND = [b / (2 * k) for k, b in enumerate(BERNOULLI, 1)]  # digamma's

# Polynomials that interpolate exact values at Chebyshev points, with errors below 1e-17: coefficients of 1, t, t*t, ...
# lgamma(x) / ((x - 1) * (x - 2)) and digamma(x) / (x - its zero) from 1 to 2.5, in t = x - 1.75
LGAMMA = [
    0.4501393121092563, -0.11948158662524275, 0.04452044719850941, -0.019053957830247412, 0.008776370425277888,
    -0.004226194125928346, 0.0020955338792364464, -0.0010605660749412342, 0.0005448970025495887,
    -0.0002831906297104388, 0.00014851664114522942, -7.846167352252309e-05, 4.170624738675929e-05,
    -2.228191217665965e-05, 1.194597872164936e-05, -6.434822788014993e-06, 3.516434844428187e-06,
    -1.9066804238023735e-06, 9.424957587698116e-07, -5.128211509102332e-07, 4.346200532078776e-07,
    -2.386040832536453e-07, -3.336913537804954e-08, 1.8847734392676648e-08, 9.11277895517167e-08,
    -5.0333679908980265e-08,
]  # fmt: skip
DIGAMMA = [
    0.8581832171262995, -0.3262546278681057, 0.15712011335204287, -0.08228558635577836, 0.04479965445273985,
    -0.024890048488912565, 0.01398578618617086, -0.007910468781929783, 0.00449181364672186, -0.002556686367507804,
    0.0014573755956349848, -0.0008314991405858443, 0.0004746724618090757, -0.00027107414127335234,
    0.00015488023513747138, -8.848107178256062e-05, 5.037306922478186e-05, -2.8781726259309088e-05,
    1.699656557302208e-05, -9.711942635667115e-06, 4.363954155587837e-06, -2.493637963206625e-06,
    3.176783869523677e-06, -1.8152982571215072e-06, -6.553134477930105e-07, 3.744655461967921e-07,
    7.489345618425701e-07, -4.279624085203948e-07,
]  # fmt: skip
ZERO, ZERO_REST = 1.4616321449683622, 9.549995429965697e-17  # of digamma, as a float and its rounding error
# erf(x) / x up to 1, in t = x*x - 0.5; (x + 0.75) erfc(x) exp(x*x) from 0.45 to 28, in t = (x - 3) / (x + 3) - 1/16
ERF = [
    0.9654687386698673, -0.2810721780454342, 0.07940998675593483, -0.018283884489152538, 0.0034802744966656173,
    -0.0005611894221277441, 7.829649525455377e-05, -9.614808525709598e-06, 1.0536449530013862e-06,
    -1.0420476859445043e-07, 9.38762931097412e-09, -7.764167415589177e-10, 5.958930343261137e-11,
    -4.230945824295338e-12,
]  # fmt: skip
ERFC = [
    0.6620717633345614, -0.1443852841808494, 0.04182558106034126, 0.017907423613223884, -0.0335736507772901,
    0.024127542922272222, -0.01010815267298151, 0.0017851582045277305, 0.0005780704542733994,
    -0.00038878498499102747, 3.6899694827124075e-06, 5.681936472580054e-05, -7.08841817717599e-06,
    -8.863557604005712e-06, 1.5130109243905226e-06, 1.5813788065975153e-06, -2.282261819413751e-07,
    -2.869359886917421e-07, 2.0902164233586402e-08, 3.5884239034335214e-08, -7.150891145404653e-11,
]  # fmt: skip
# normal_ppf(p) / (p - 0.5) for p from 0.1, in t = 12.5 (p - 0.5)^2 - 1; below,
# -normal_ppf(p) / r - 1 for r = sqrt(-2 log p) up to 39, in t = 1.7 (s - 0.186), s = (r - 5) / (r + 5)
PPF = [
    2.7641859486299936, 0.31925406095629427, 0.08060594058127693, 0.02542326407241116, 0.008914387574170691,
    0.0033251480795242236, 0.001291569011654941, 0.0005162065534437819, 0.00021073475778058266,
    8.744851348815404e-05, 3.676298461576825e-05, 1.5619475673391817e-05, 6.696086706108748e-06,
    2.891363049138272e-06, 1.2524032915268924e-06, 5.471218713005095e-07, 2.481414004212243e-07,
    1.0948126164896043e-07, 3.752128668223489e-08, 1.656682503210872e-08, 1.7491020504459757e-08,
    7.866414534615372e-09, -2.520201666481422e-09, -1.1513238811345767e-09, 1.583254850944774e-09,
    7.163175859290862e-10,
]  # fmt: skip
PPF_TAIL = [
    -0.05557899295241081, 0.1137550337256169, -0.10009290198996648, 0.06182272499955686, -0.035383649262267614,
    0.019220275597648773, -0.010225829141853023, 0.005335627675356335, -0.002764349823819762, 0.0014178934676626546,
    -0.0007256179745016491, 0.0003687753731975216, -0.00018743942623202178, 9.469253218578595e-05,
    -4.7877688327143346e-05, 2.4095309659956082e-05, -1.2307276302369392e-05, 6.134764788233779e-06,
    -2.8017182983772044e-06, 1.4656930562850251e-06, -1.1720689248476692e-06, 4.902053047445124e-07,
    2.062809087480564e-07, -1.241378535303588e-08, -3.223248599211996e-07, 1.0099844153956745e-07,
    1.033601986964747e-07, -2.8364447415193877e-08, -2.7769564415462047e-08, 9.435471934461457e-09,
]  # fmt: skip
# (j0(x) - 1) / x^2 up to 2, in t = x*x / 2 - 1; j0 up to 5 and 8, in t = (x - 3.25) / 1.75 and (x - 6.5) / 1.5; the
# derivatives of these polynomials give j1
J0 = [
    -0.22043292779051005, 0.027936272354384152, -0.0015797126886936952, 5.006086457721573e-05,
    -1.0119825602918645e-06, 1.4172549664557757e-08, -1.4557442364106125e-10, 1.1433918726254019e-12,
    -7.089526204750322e-15, 3.5578318852482976e-17,
]  # fmt: skip
J0_TO_5 = [
    -0.33275080217061154, -0.4219594540266068, 0.6231291342155276, 0.08314090162733326, -0.1346182670691173,
    -0.006119738650163346, 0.011918233186747921, 0.0002310007916553432, -0.0005804066386946553,
    -4.9910991733531134e-06, 1.7936164995768732e-05, 6.004193191560195e-08, -3.834162754854382e-07,
    -2.0382240483527325e-10, 6.009547354676961e-09, -6.419858809095602e-12, -7.198719285283033e-11,
    1.3702807188460423e-13, 6.574036925523722e-13,
]  # fmt: skip
J0_TO_8 = [
    0.2600946055816064, 0.23076195211495776, -0.3192328103694946, -0.059931179007749004, 0.06024396384449209,
    0.003908069967057937, -0.004232578799161811, -0.0001169217805418475, 0.00015743263638234604,
    1.883336299773969e-06, -3.6524214349315554e-06, -1.540656803899054e-08, 5.8107692247990575e-08,
    8.965136638332632e-13, -6.742619029753975e-10, 1.6149902925883498e-12, 5.787940304844022e-12,
    -2.1978108381729443e-14,
]  # fmt: skip
J1 = [-2.0 * (k + 1) * (c + after) for k, (c, after) in enumerate(zip(J0, [*J0[1:], 0.0], strict=True))]
J1_TO_5 = [k * c / -1.75 for k, c in enumerate(J0_TO_5)][1:]
J1_TO_8 = [k * c / -1.5 for k, c in enumerate(J0_TO_8)][1:]
# P and x Q of https://dlmf.nist.gov/10.17.E3 from 8 on, for j0 and j1, in t = 2 (8 / x)^2 - 1
P0 = [
    0.9994572757882519, -0.0005363673192129684, 6.137416080147722e-06, -2.0527448258799454e-07,
    1.2803760990761632e-08, -1.2121099519052884e-09, 1.5500758850965851e-10, -2.4911156906092825e-11,
    4.7832464504070676e-12, -1.0160586409351026e-12, 2.486651879170221e-13, -1.0240462527458219e-13,
    3.2274659236696375e-14,
]  # fmt: skip
Q0 = [
    -0.12444091103610815, 0.0005466519279472145, -1.1817110661060929e-05, 5.684971970025582e-07,
    -4.534973207071527e-08, 5.14616046007418e-09, -7.576039459098778e-10, 1.3648031992020618e-10,
    -2.8806407842213743e-11, 6.540951694630104e-12, -1.7086888259958598e-12, 7.904491537683217e-13,
    -2.632409683663596e-13,
]  # fmt: skip
P1 = [
    1.0009070262780821, 0.0008988049416705195, -7.959694698478657e-06, 2.45367663311693e-07, -1.470851251614582e-08,
    1.360297066536911e-09, -1.713127898085761e-10, 2.7234187811287063e-11, -5.1871998149145174e-12,
    1.0958092927251801e-12, -2.668914316041983e-13, 1.0911783467601572e-13, -3.4273425511664546e-14,
]  # fmt: skip
Q1 = [
    0.3742149922195918, -0.0007697167057640408, 1.456961480970388e-05, -6.633568654309039e-07,
    5.1361063866241454e-08, -5.720815729915534e-09, 8.315770668743603e-10, -1.4842507670096497e-10,
    3.110817879111466e-11, -7.031097818821853e-12, 1.828906065466445e-12, -8.401208738069145e-13,
    2.789203537560468e-13,
]  # fmt: skip

# 1 / sqrt(2) and 1 / sqrt(2 pi), each as a float and its rounding error; the first also as two halves of 26 bits
SPLIT = 2.0**27 + 1.0
ROOT, ROOT_REST = math.sqrt(0.5), -4.833646656726457e-17
ROOT_UPPER = ROOT * SPLIT - (ROOT * SPLIT - ROOT)
ROOT_LOWER = ROOT - ROOT_UPPER
PEAK, PEAK_REST = 0.3989422804014327, -2.4923272022777433e-17
ROOT_PI, ROOT_PI_REST = 1.772453850905516, -7.666586499825799e-17  # the square root of pi, the same way
ONE_OVER_E, ONE_OVER_E_REST = 0.36787944117144233, -1.2428753672788363e-17  # the same way
ONE_LESS_EULER, ONE_OVER_SQRT_PI, HALF_LOG_2PI_LESS_HALF = 0.42278433509846713, 0.5641895835477563, 0.4189385332046727


def guarded(function: Callable[..., float], overflow: float = inf) -> Callable[..., float]:
    """Wrap a function of `math` so that it returns the IEEE 754 result where `math` raises.

    `overflow` is the result beyond the largest float; outside the domain the result is nan.

    >>> guarded(math.sqrt)(-1.0), guarded(math.cosh)(1000.0)
    (nan, inf)
    """

    def call(*xs: float) -> float:
        try:
            return function(*xs)
        except OverflowError:
            return math.copysign(inf, xs[0]) if overflow is nan else overflow
        except ValueError:
            return nan

    return call


def logarithm(function: Callable[[float], float], pole: float = 0.0) -> Callable[[float], float]:
    """Wrap a logarithm of `math` so that it returns -inf at its pole and nan below."""

    def call(x: float) -> float:
        return function(x) if x > pole else -inf if x == pole else nan

    return call


def atanh(x: float) -> float:
    """Return the inverse of tanh, with +-inf at +-1 and nan beyond."""
    return math.atanh(x) if -1.0 < x < 1.0 else math.copysign(inf, x) if abs(x) == 1.0 else nan


log1p: Callable[[float], float] = logarithm(math.log1p, -1.0)


def sign(x: float) -> float:
    """Return the sign of x: -1, 0 or 1; nan for nan."""
    return math.copysign(1.0, x) if x < 0.0 or x > 0.0 else x


def floor(x: float) -> float:
    """Return the greatest integer that is not above x, as a float; -0, infinities and nan are returned unchanged."""
    return x // 1.0 if abs(x) < inf else x


def round_(x: float) -> float:
    """Return the nearest integer as a float, the even one on a tie; -0, infinities and nan are returned unchanged."""
    return math.copysign(round(x), x) if abs(x) < 2.0**52 else x


def remainder(x: float, y: float) -> float:
    """Return x % y, with nan for y = 0."""
    return x % y if y else nan


to_multiple: Callable[..., float] = guarded(math.remainder)  # the distance of x from the nearest multiple of y


def cbrt(x: float) -> float:
    """Return the cube root: the C library's, which can be 3 ulp off, improved by one Newton step."""
    y = math.cbrt(x)
    return y - (y - x / (y * y)) / 3.0 if 0.0 < abs(x) < inf else y


def norm(*xs: float) -> float:
    """Return sqrt(x1 x1 + x2 x2 + ...) without overflow; nan if any operand is, beside an infinity too."""
    length = math.hypot(*xs)
    return nan if length == inf and any(x != x for x in xs) else length


# -- rules ------------------------------------------------------------------------------------------------------------


def where(condition: Any, x: Any, y: Any) -> Any:
    """Return x if the condition holds, else y."""
    return x if condition else y


def choose(condition: Any, x: Callable[[], Any], y: Callable[[], Any]) -> Any:
    """Return x() if the condition holds, else y(); other kinds of numbers may have to compute both."""
    return x() if condition else y()


def _guarded_form(condition: Any, careful: Callable[[], Any], plain: Any) -> Any:
    """Return `careful()` where the plain form loses digits to under- or overflow. Back ends choose for themselves."""
    return careful() if condition else plain


def polynomial(coefficients: Sequence[float], t: Any) -> Any:
    """Evaluate a polynomial by Horner's rule."""
    total: Any = coefficients[-1]
    for coefficient in coefficients[-2::-1]:
        total = total * t + coefficient
    return total


def exact_product(x: Any, y: Any) -> tuple[Any, Any]:
    """Return x * y and its rounding error, by Dekker's product of halves (https://doi.org/10.1007/BF01397083)."""
    x1, y1 = x * SPLIT - (x * SPLIT - x), y * SPLIT - (y * SPLIT - y)
    x2, y2, product = x - x1, y - y1, x * y
    return product, x1 * y1 - product + x1 * y2 + x2 * y1 + x2 * y2


def _exp_of_square(x: Any, factor: float) -> tuple[Any, Any]:
    """A float and its relative error as an approximation of exp(-factor * x*x): its exponent is exact.

    x is split into its upper 26 bits, whose square is exact, and the rest.
    """
    x = where(abs(x) > 40.0, 40.0, x)  # beyond, the result is 0
    upper = round_(x * 2.0**20) * 2.0**-20
    return exp(-factor * (upper * upper)), expm1(factor * ((upper - x) * (upper + x)))


def gaussian(x: Any) -> Any:
    """exp(-x*x), accurate in the tails too: there the rounding of x*x would cost 500 units in the last place."""
    power, rest = _exp_of_square(x, 1.0)
    return power + power * rest


def normal_pdf(x: Any) -> Any:
    """The normal density exp(-x*x / 2) / sqrt(2 pi), accurate in the tails too."""
    power, rest = _exp_of_square(x, 0.5)
    return power * (PEAK + (PEAK * rest + PEAK_REST))


def normal_cdf(x: Any) -> Any:
    """The normal distribution function, erfc(-x / sqrt(2)) / 2, accurate in the lower tail too.

    There the rounding of x / sqrt(2) would cost 700 units in the last place. So what that leaves out is found by
    Dekker's product of halves (https://doi.org/10.1007/BF01397083), and a linear term accounts for it.
    """
    x = where(x < -38.6, -38.6, where(x > 8.3, 8.3, x))  # beyond, the result is 0 or 1
    t = -x * ROOT
    upper = x * SPLIT - (x * SPLIT - x)
    lower = x - upper
    rest = upper * ROOT_UPPER + t + upper * ROOT_LOWER + lower * ROOT_UPPER + lower * ROOT_LOWER + x * ROOT_REST
    return 0.5 * erfc(t) + rest * gaussian(t) * ONE_OVER_SQRT_PI


def erf(x: Any) -> Any:
    """Return the error function, where the C library has none."""
    size = abs(x)
    beyond = lambda: where(x < 0.0, erfc(size) - 1.0, 1.0 - erfc(size))  # noqa: E731  (a form)
    return choose(size < 1.0, lambda: x * polynomial(ERF, x * x - 0.5), beyond)


def erfc(x: Any) -> Any:
    """Return 1 - erf(x), where C has none; the tail is exp(-x*x) times a smooth factor: doi.org/10.2307/2006488."""
    size = abs(x)

    def beyond() -> Any:
        above = where(size > 28.0, 28.0, size)
        power, rest = _exp_of_square(above, 1.0)
        scale, (total, lost) = above + 0.75, _scaled_erfc(above)
        scaled, lost = total / scale, lost / scale
        tail = power * (scaled + (scaled * rest + lost))
        return where(x < 0.0, 2.0 - tail, tail)

    return choose(size < 0.5, lambda: 1.0 - x * polynomial(ERF, x * x - 0.5), beyond)


def _scaled_erfc(x: Any) -> tuple[Any, Any]:
    """Return (x + 0.75) erfc(x) exp(x*x) for x from 0.45 to 28, and its rounding error."""
    t = (x - 3.0) / (x + 3.0) - 0.0625
    varying = t * polynomial(ERFC[1:], t)
    total = ERFC[0] + varying
    return total, ERFC[0] - total + varying


def mills(x: Any) -> Any:
    """Return Mills' ratio, normal_cdf(-x) / normal_pdf(x), for x from 0.7 to 39: https://dlmf.nist.gov/7.8."""
    total, lost = _scaled_erfc(x * ROOT)
    return (ROOT_PI * total + (ROOT_PI * lost + ROOT_PI_REST * total)) / (x + 0.75 / ROOT)


def gaussian_slope(out: Any, x: Any) -> Any:
    """Return -2 x e^-x^2: in the tail e^-x^2 is e^-(|x| - 1)^2 * e^(1 - 2|x|), whose exponents are exact."""
    tail = abs(abs(x) - 27.0) < 1.0
    return _guarded_form(tail, lambda: -2.0 * x * gaussian(abs(x) - 1.0) * exp(1.0 - 2.0 * abs(x)), -2.0 * (x * out))


def normal_pdf_slope(out: Any, x: Any) -> Any:
    """Return -x times the normal density."""
    return _guarded_form(out < 1e-305, lambda: _normal(-x, x), -x * out)


def _normal(factor: Any, x: Any) -> Any:
    """Return factor times the normal density, which may be large although the density underflows."""
    return PEAK * factor * gaussian(0.5 * x) * gaussian(0.5 * x)


def gelu(x: Any) -> Any:
    """Return x times the normal distribution function of x."""
    return _guarded_form(abs(x + 38.25) < 0.75, lambda: _normal(x * mills(-x), x), x * normal_cdf(x))


def gelu_slope(x: Any) -> Any:
    """Return the derivative of gelu."""
    plain = normal_cdf(x) + x * normal_pdf(x)
    return _guarded_form(abs(x + 38.25) < 0.75, lambda: _normal(x + mills(-x), x), plain)


def normal_ppf(p: Any) -> Any:
    """Return the inverse of normal_cdf: infinite at 0 and 1, nan beyond them."""
    q = where(p < 0.5, p, 1.0 - p)

    def tail() -> Any:
        squared = -2.0 * log(q)
        bounded = where(squared > 1600.0, 1600.0, squared)
        r = sqrt(bounded)
        product, rest = exact_product(r, r)
        varying = r * polynomial(PPF_TAIL, 1.7 * ((r - 5.0) / (r + 5.0) - 0.186))
        size = r + (varying + 0.5 * ((bounded - product) - rest) / r) + (squared - bounded)
        return where(p < 0.5, -size, size)

    middle = p - 0.5
    return choose(q > 0.1, lambda: middle * polynomial(PPF, 12.5 * (middle * middle) - 1.0), tail)


def quantile_slope(out: Any, p: Any) -> Any:
    """Return 1 / normal_pdf(out); in the tails by Mills' ratio, as there the rounding of out would count many times."""
    q = where(p < 0.5, p, 1.0 - p)
    inside, below = where(q > 0.1, out, 0.0), where(q > 0.0, where(q < 0.2, abs(out), 1.0), 1.0)
    tail = div(mills(below), where(q > 0.0, q, where(q == 0.0, 0.0, nan)))
    return where(q > 0.1, div(1.0, normal_pdf(inside)), tail)


def j0(x: Any) -> Any:
    """Return the Bessel function of the first kind of order 0."""
    size = abs(x)
    near = lambda: 1.0 + x * x * polynomial(J0, 0.5 * (x * x) - 1.0)  # noqa: E731  (a form)
    beyond = lambda: _bessel_to_8(size, J0_TO_5, J0_TO_8)  # noqa: E731  (a form)
    return choose(size < 8.0, lambda: choose(size < 1.6, near, beyond), lambda: _bessel(size, P0, Q0, 0.0))


def j1(x: Any) -> Any:
    """Return the Bessel function of the first kind of order 1."""
    size = abs(x)
    sign = where(x < 0.0, -1.0, 1.0)
    near = lambda: x * polynomial(J1, 0.5 * (x * x) - 1.0)  # noqa: E731  (a form)
    beyond = lambda: sign * _bessel_to_8(size, J1_TO_5, J1_TO_8)  # noqa: E731  (a form)
    return choose(size < 8.0, lambda: choose(size < 1.6, near, beyond), lambda: sign * _bessel(size, P1, Q1, 1.0))


J1_SLOPE = [  # https://dlmf.nist.gov/10.2.E2
    (-1) ** k * (2 * k + 1) / (2.0 ** (2 * k + 1) * math.factorial(k) * math.factorial(k + 1)) for k in range(12)
]


def j1_slope(out: Any, x: Any) -> Any:
    """Return j0 - j1 / x; near 0 by its series, which has derivatives of any order there."""
    near = abs(x) < 1.0
    return where(near, polynomial(J1_SLOPE, x * x), j0(x) - div(out, where(near, 1.0, x)))


def _bessel_to_8(x: Any, to_5: Sequence[float], to_8: Sequence[float]) -> Any:
    near, far = lambda: polynomial(to_5, (x - 3.25) / 1.75), lambda: polynomial(to_8, (x - 6.5) / 1.5)
    return choose(x < 5.0, near, far)


def _bessel(x: Any, p: Sequence[float], q: Sequence[float], order: float) -> Any:
    """Return J of order 0 or 1 for x >= 8: https://dlmf.nist.gov/10.17.E3."""
    bounded = where(x == inf, 8.0, x)
    c, s, r = cos(bounded), sin(bounded), 8.0 / bounded
    t = 2.0 * (r * r) - 1.0
    even, odd = polynomial(p, t), polynomial(q, t) / bounded
    along, across = (s - c, -s - c) if order else (c + s, s - c)
    return sqrt(1.0 / pi / x) * (even * along - odd * across)


def norm_partials(out: Any, *xs: Any) -> list[Any]:
    """Return x / norm for each x, and 0 at the origin; scaled where the norm overflows or has lost its digits."""
    finite = functools.reduce(lambda total, x: total + x * 0.0, xs, 0.0) == 0.0
    lost = where(out == 0.0, False, where(out < 1e-290, True, where(out < inf, False, finite)))
    k = where(out < 1.0, 2.0**600, 2.0**-600)
    length = _guarded_form(lost, lambda: norm(*[x * k for x in xs]), where(out == 0.0, 1.0, out))

    def cosine(x: Any) -> Any:
        return where(out == 0.0, 0.0, div(_guarded_form(lost, lambda: x * k, x), length))

    return [cosine(x) for x in xs]


def xlogy(x: Any, y: Any) -> Any:
    """Return x log(y), and 0 where x is 0."""
    return where(x == 0.0, where(y == y, 0.0, y), x * log(y))


def xlogy_slope(x: Any, y: Any) -> Any:
    """Return the derivative of xlogy with respect to y, x / y; at the origin 0, as beside it for x = 0."""
    inside = where(y >= 0.0, where(y == 0.0, where(x == 0.0, inf, y), y), where(x == 0.0, y, nan))
    return div(x, inside)


def xlog1py(x: Any, y: Any) -> Any:
    """Return x log(1 + y), accurate for small y, and 0 where x is 0."""
    return where(x == 0.0, where(y == y, 0.0, y), x * log1p(y))


def entr(x: Any) -> Any:
    """Return -x log(x), one term of an entropy: 0 at 0 and -inf below."""
    return where(x > 0.0, -x * log(x), where(x == 0.0, 0.0, where(x < 0.0, -inf, x)))


def entr_slope(x: Any) -> Any:
    """Return -1 - log(x); near its zero, 1 / e, by the distance from there."""
    near = abs(x - 0.4) < 0.2
    beside = log1p(math.e * ((where(near, x, 0.4) - ONE_OVER_E) - ONE_OVER_E_REST))
    return where(near, -beside, -1.0 - log(x))


def sinc(x: Any) -> Any:
    """Return sin(pi x) / (pi x), which is 0 at all integers but 0, where it is 1: x is reduced exactly."""
    size = where(abs(x) < inf, abs(x), 1.0)
    rest = size - 2.0 * round_(0.5 * size)  # from -1 to 1: the sine has a period of 2
    d = abs(rest)
    sine = where(rest < 0.0, -1.0, 1.0) * sin(pi * where(d > 0.5, 1.0 - d, d))
    return where(x == x, where(size > 0.0, div(sine, pi * where(size > 0.0, size, 1.0)), 1.0), x)


SINC_SLOPE = [  # of sinc's derivative over x, in x^2
    (-1.0) ** (k + 1) * (2 * k + 2) / math.factorial(2 * k + 3) * pi ** (2 * k + 2) for k in range(12)
]


def sinc_slope(out: Any, x: Any) -> Any:
    """Return (cos(pi x) - sinc(x)) / x; near 0 by its series, which has derivatives of any order there."""
    near = abs(x) < 0.5
    far = where(near, 1.0, where(abs(x) < inf, x, 0.5))
    d = abs(far - 2.0 * round_(0.5 * far))
    slope = div(sin(pi * (0.5 - d)) - out, where(near, 1.0, x))
    inside = where(near, x, 0.0)
    return where(near, inside * polynomial(SINC_SLOPE, inside * inside), slope)


def lgamma(x: Any) -> Any:
    """Return log|gamma(x)|, with inf at 0, -1, -2, ...

    It uses a polynomial from 1 to 2.5, the recurrence up to 12, Stirling's series beyond, and the reflection formula
    below -0.5. `math.lgamma` is 20 ulp off near its zeros 1 and 2.
    """
    above = where(x < -0.5, -x, x)
    value = choose(above < 12.0, lambda: _lgamma_by_recurrence(above), lambda: _stirling(above))
    return choose(x < -0.5, lambda: _lgamma_reflected(x, value), lambda: value)


def _lgamma_by_recurrence(x: Any) -> Any:
    """Return lgamma(x) from -0.5 to 12."""

    def below() -> Any:  # one or two steps up; the rounding error of a step matters near the zero at 1
        low = where(x < 0.0, x + 1.0, x)
        rest = where(x < 0.0, 0.0, x - (low + 1.0 - 1.0))
        return _lgamma_near(low + 1.0) + ONE_LESS_EULER * rest - log(abs(where(x < 0.0, x * low, x)))

    def beyond() -> Any:
        steps = where(x < 2.5, 0.0, floor(x - 1.5))
        factors = 1.0
        for k in range(1, 11):
            factors = where(steps >= float(k), factors * (x - float(k)), factors)
        return _lgamma_near(x - steps) + log(factors)

    return choose(x < 1.0, below, beyond)


def _lgamma_near(x: Any) -> Any:
    return (x - 1.0) * (x - 2.0) * polynomial(LGAMMA, x - 1.75)


def _stirling(x: Any) -> Any:
    """Return lgamma(x) for x >= 12: https://dlmf.nist.gov/5.11.E1."""
    r = div(1.0, x)
    return (x - 0.5) * (log(x) - 1.0) + (HALF_LOG_2PI_LESS_HALF + r * polynomial(STIRLING, r * r))


def _lgamma_reflected(x: Any, above: Any) -> Any:
    nearest = where(x > -(2.0**53), x - round_(x), 0.0)
    return where(nearest == 0.0, inf, -log(abs(x * sin(pi * nearest)) / pi) - above)


def polygamma(order: Any, x: Any) -> Any:
    """Return the derivative of lgamma of order `order` + 1: 0 is digamma, 1 trigamma; nan at the poles -1, -2, ...

    `order` is an integer from 0 to 100; for others the result is nan, as their factorials overflow. Below 0 it sums
    over the poles, up to 8 or more it uses the recurrence, and above a series (https://dlmf.nist.gov/5.15).

    >>> round(polygamma(0, 1.0), 12), round(polygamma(1, 1.0), 12)   # minus Euler's constant; pi**2 / 6
    (-0.577215664902, 1.644934066848)
    """
    if not 0.0 <= order <= 100.0 or order != int(order):
        return nan
    n = int(order)
    above = (lambda: _digamma(x)) if n == 0 else lambda: _polygamma(n, x)
    return choose(x > 0.0, above, lambda: _at_poles(n, x))


def _digamma(x: Any) -> Any:
    """Return polygamma(0, x) for x > 0, with all digits correct also near its zero."""

    def by_recurrence() -> Any:
        steps = where(x < 2.5, 0.0, floor(x - 1.5))
        above = where(x < 1.0, x + 1.0, x - steps)
        rest = where(x < 1.0, x - (above - 1.0), 0.0)  # the rounding error of the step
        total = rest - where(x < 1.0, div(1.0, x), 0.0)
        for k in range(6, 0, -1):
            total = total + where(steps >= float(k), div(1.0, x - float(k)), 0.0)
        return total + (above - ZERO - ZERO_REST) * polynomial(DIGAMMA, above - 1.75)

    def by_series() -> Any:
        z = div(1.0, x * x)
        return log(x) - (div(0.5, x) + z * polynomial(BEYOND, z))

    return choose(x < 8.0, by_recurrence, by_series)


def _polygamma(n: int, x: Any, first: float = 0.0) -> Any:
    """Return polygamma(n, x + first) for n >= 1 and x + first > 0, without rounding x + first."""

    def by_recurrence() -> Any:
        steps = range(int(first), 8 + n)
        total = _moved(lambda y: _polygamma_by_series(n, y), n, x, 8.0 + n)
        for k in steps[:0:-1]:
            total = total + _moved(lambda y: div(float(math.factorial(n)), _power(y, n + 1)), n + 1, x, float(k))
        return total + _moved(lambda y: _ratio(float(math.factorial(n)), y, n + 1), n + 1, x, first)

    size = choose(x < 8.0 + n, by_recurrence, lambda: _polygamma_by_series(n, x))
    return size if n % 2 else -size


def _moved(function: Callable[[Any], Any], power: int, x: Any, by: float) -> Any:
    """Return function(x + by), nearly a negative power, corrected for the rounding of x + by if the power is large."""
    y = x + by
    value = function(y)
    return value if by == 0.0 or (power < 6 and by != 1.0) else value - value * (power * div(x - (y - by), y))


def _polygamma_by_series(n: int, x: Any) -> Any:
    r = div(1.0, x)
    return _ratio(float(math.factorial(n - 1)), x, n) * (1.0 + r * (0.5 * n + r * polynomial(_terms(n), r * r)))


@functools.cache
def _terms(n: int) -> list[float]:
    return [b * math.comb(2 * k + n - 1, n - 1) for k, b in enumerate(BERNOULLI, 1)]


def _power(x: Any, n: int) -> Any:
    """Return x**n, for small n by products, which is faster."""
    if n > 4:
        return pow_(x, float(n))
    root = _power(x, n // 2) if n > 1 else 1.0
    return root * root * x if n % 2 else root * root


def _ratio(factor: float, x: Any, n: int) -> Any:
    """Return factor / x**n without overflow or underflow of x**n."""
    power = pow_ if n > 4 else _power
    return div(div(factor, power(x, n // 2)) if n > 1 else factor, power(x, n - n // 2))


def _at_poles(n: int, x: Any) -> Any:
    """Return polygamma(n, x) for x <= 0: for n = 0 by the cotangent, else the nearest pole's term plus the others."""
    d = where(x > -(2.0**53), x - round_(x), 0.0)  # the distance from the nearest pole, exact
    if n == 0:
        steep = abs(d) > 0.25
        t = tan(pi * where(steep, where(d > 0.0, 0.5, -0.5) - d, d))
        value = _digamma(1.0 - x) - pi * where(steep, t, div(1.0, t))
    else:
        sign = 1.0 if n % 2 else -1.0
        below = _polygamma(n, -d, 1.0) - _polygamma(n, 1.0 - x)  # the poles between the nearest one and 0
        value = _ratio(sign * math.factorial(n), d, n + 1) + (_polygamma(n, d, 1.0) + sign * below)
    at_zero = -div(1.0, x) if n % 2 == 0 else inf
    return where(x == 0.0, at_zero, where(d == 0.0, nan, value))
