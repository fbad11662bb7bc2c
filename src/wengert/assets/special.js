// What JavaScript's Math lacks. Their names end in _, and a page holds those that it needs.

function pow_(x, y) {
  // IEEE 754: 1**y and (-1)**inf are 1; JavaScript says nan.
  return x === 1 || (x === -1 && Math.abs(y) === Infinity) ? 1 : Math.pow(x, y);
}

function exp2_(x) {
  return Math.pow(2, x);
}

function round_(x) {
  // Math.round takes a tie up, not to the even number.
  const up = Math.round(x);
  return up - x === 0.5 && up % 2 !== 0 ? up - 1 : up;
}

function remainder_(x, y) {
  // Of the sign of y, where JavaScript's % has that of x.
  const rest = x % y;
  if (rest === 0) return y < 0 ? -0 : 0;
  return rest < 0 === y < 0 ? rest : rest + y;
}

function gaussian_(x) {
  // exp(-x*x), with x split into its upper bits, whose square is exact, and the rest.
  if (!(Math.abs(x) < 27.5)) return x !== x ? x : 0;
  const upper = Math.round(x * 2097152) / 2097152;
  return Math.exp(-upper * upper) * Math.exp((upper - x) * (upper + x));
}

function normal_pdf_(x) {
  // As gaussian_.
  if (!(Math.abs(x) < 39)) return x !== x ? x : 0;
  const upper = Math.round(x * 1048576) / 1048576;
  return (Math.exp(-0.5 * upper * upper) * Math.exp(0.5 * (upper - x) * (upper + x))) / Math.sqrt(2 * Math.PI);
}

function normal_cdf_(x) {
  return 0.5 * erfc_(-x * Math.SQRT1_2);
}

function erf_(x) {
  if (x !== x) return x;
  if (Math.abs(x) > 2) return x > 0 ? 1 - erfc_(x) : erfc_(-x) - 1;
  // https://dlmf.nist.gov/7.6.E2: all terms have one sign
  let term = x, total = x;
  for (let n = 1; Math.abs(term) > 1e-17 * Math.abs(total); n++) total += term *= (2 * x * x) / (2 * n + 1);
  return (2 / Math.sqrt(Math.PI)) * gaussian_(x) * total;
}

function erfc_(x) {
  if (!(x > 2)) return 1 - erf_(x);
  // https://dlmf.nist.gov/7.9.E1, from its far end
  let tail = x;
  for (let n = 120; n > 0; n--) tail = x + n / 2 / tail;
  return gaussian_(x) / Math.sqrt(Math.PI) / tail;
}

function norm_(...xs) {
  return xs.some((x) => x !== x) ? NaN : Math.hypot(...xs);
}

function lgamma_(x) {
  if (Math.abs(x) === Infinity) return Infinity;
  if (x <= 0) {
    if (x === Math.floor(x)) return Infinity;
    return Math.log(Math.PI / Math.abs(Math.sin(Math.PI * (x - Math.round(x))))) - lgamma_(1 - x);
  }
  if (x === 1 || x === 2) return 0;
  // Stirling's series (https://dlmf.nist.gov/5.11.E1) above 15, and the recurrence below
  let below = 1;
  for (; x < 15; x++) below *= x;
  const r = 1 / (x * x);
  const tail = (1 / 12 - r * (1 / 360 - r * (1 / 1260 - r * (1 / 1680 - r * (1 / 1188 - (r * 691) / 360360))))) / x;
  return (x - 0.5) * Math.log(x) - x + 0.9189385332046727 + tail - Math.log(below);
}

function polygamma_(n, x) {
  // As special.py does it: reflection below 0, recurrence up to 20 + n, then https://dlmf.nist.gov/5.15
  if (!(n >= 0 && n <= 100) || n !== Math.floor(n) || x !== x || x === -Infinity) return NaN;
  if (x === 0) return n % 2 ? Infinity : 1 / -x;
  if (x === Infinity) return n ? 0 : Infinity;
  if (x < 0) {
    if (x === Math.floor(x)) return NaN;
    const c = 1 / Math.tan(Math.PI * (x - Math.round(x)));
    let polynomial = [0, 1];
    for (let k = 0; k < n; k++) {
      const next = Array(polynomial.length + 1).fill(0);
      for (let j = 1; j < polynomial.length; j++) {
        next[j - 1] -= j * polynomial[j];
        next[j + 1] -= j * polynomial[j];
      }
      polynomial = next;
    }
    const value = polynomial.reduceRight((total, a) => total * c + a, 0);
    return (n % 2 ? -1 : 1) * polygamma_(n, 1 - x) - Math.PI ** (n + 1) * value;
  }
  let factorial = 1;
  for (let k = 2; k < n; k++) factorial *= k;
  const full = factorial * (n || 1);
  let total = 0;
  for (; x < 20 + n; x++) total += full / x ** (n + 1);
  total += n ? factorial * x ** -n + (full / 2) * x ** -(n + 1) : 0.5 / x - Math.log(x);
  const bernoulli = [1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798];
  let rising = full / 2;
  for (let k = 1; k <= bernoulli.length; k++) {
    // (2k + n - 1)! / (2k)!
    if (k > 1) rising *= ((2 * k + n - 2) * (2 * k + n - 1)) / ((2 * k - 1) * (2 * k));
    else rising = (full * (n + 1)) / 2;
    total += bernoulli[k - 1] * rising * x ** -(2 * k + n);
  }
  return n % 2 ? total : -total;
}

function normal_ppf_(p) {
  // Newton's method, on log(p): it converges from any start below the root.
  if (p > 0.5) return 0 - normal_ppf_(1 - p);
  if (!(p > 0)) return p === 0 ? -Infinity : NaN;
  if (p > 0.3) {
    let x = 0;
    for (let n = 0; n < 8; n++) x += ((p - 0.5) - 0.5 * erf_(x * Math.SQRT1_2)) / normal_pdf_(x);
    return x;
  }
  let x = -Math.sqrt(-2 * Math.log(p));
  for (let n = 0; n < 60; n++) {
    const r = 1 / (x * x), tail = -0.5 / r - Math.log(-x * Math.sqrt(2 * Math.PI));  // https://dlmf.nist.gov/7.12.E1
    const log = x < -20 ? tail + Math.log1p(-r * (1 - r * (3 - r * (15 - r * 105)))) : Math.log(normal_cdf_(x));
    x += (Math.log(p) - log) / (x < -20 ? -x - 1 / x : normal_pdf_(x) / normal_cdf_(x));
  }
  return x;
}

function j0_(x) {
  return bessel_(0, Math.abs(x));
}

function j1_(x) {
  return x < 0 ? -bessel_(1, -x) : bessel_(1, x);
}

function bessel_(order, x) {
  if (x === Infinity) return 0;
  let a = 1, even = 0, odd = 0;
  if (!(x > 25)) {
    // https://dlmf.nist.gov/10.9.E1 by the trapezoidal rule, whose error is J of order 80
    for (let k = 0; k < 80; k++) {
      const s = Math.sin(((k + 0.5) * Math.PI) / 80);
      even += order ? Math.sin(x * s) * s : Math.cos(x * s);
    }
    return even / 80;
  }
  // https://dlmf.nist.gov/10.17.E3
  for (let k = 0; k < 24; k++) {
    if (k % 2) odd += k % 4 === 1 ? a : -a;
    else even += k % 4 ? -a : a;
    a *= (4 * order - (2 * k + 1) ** 2) / ((k + 1) * 8 * x);
  }
  const c = Math.cos(x), s = Math.sin(x);
  return Math.sqrt(1 / Math.PI / x) * (order ? even * (s - c) + odd * (s + c) : even * (c + s) - odd * (s - c));
}

function gamma_pdf_(a, x) {
  if (!(a >= 0 && x >= 0) || (a === 0 && x === 0)) return NaN;
  if (x === 0) return a < 1 ? Infinity : a === 1 ? 1 : 0;
  return a === 0 || a === Infinity || x === Infinity ? 0 : Math.exp((a - 1) * Math.log(x) - x - lgamma_(a));
}

function gammainc_(a, x) {
  return incomplete_gamma_(a, x, false);
}

function gammaincc_(a, x) {
  return incomplete_gamma_(a, x, true);
}

function incomplete_gamma_(a, x, upper) {
  // https://dlmf.nist.gov/8.7.E1 below a, above it the continued fraction 8.9.E2 from its far end
  if (!(a >= 0 && x >= 0) || (a === 0 && x === 0) || (a === Infinity && x === Infinity)) return NaN;
  if (a === 0 || x === Infinity) return upper ? 0 : 1;
  if (a === Infinity || x === 0) return upper ? 1 : 0;
  const size = x * gamma_pdf_(a, x), steps = Math.ceil(200 + 12 * Math.sqrt(a));
  let f = 1;
  if (x < Math.max(a, 0.7)) {
    for (let k = steps; k > 0; k--) f = 1 + (x / (a + k)) * f;
    return upper ? 1 - (size * f) / a : (size * f) / a;
  }
  f = x + 2 * steps + 1 - a;
  for (let k = steps; k > 0; k--) f = x + 2 * k - 1 - a + (k * (a - k)) / f;
  return upper ? size / f : 1 - size / f;
}

function beta_pdf_(a, b, x) {
  if (!(a >= 0 && b >= 0 && x >= 0 && x <= 1) || (a === b && (a === 0 || a === Infinity))) return NaN;
  if (!(a > 0 && b > 0 && a < Infinity && b < Infinity)) return 0;
  const power = (shape, log) => (shape === 1 ? 0 : (shape - 1) * log);
  return Math.exp(power(a, Math.log(x)) + power(b, Math.log1p(-x)) + lgamma_(a + b) - lgamma_(a) - lgamma_(b));
}

function betainc_(a, b, x) {
  // https://doi.org/10.1145/131766.131776, from its far end
  if (!(a >= 0 && b >= 0 && x >= 0 && x <= 1) || (a === b && (a === 0 || a === Infinity))) return NaN;
  if (x === 0 || x === 1) return x;
  if (a === 0 || b === Infinity) return 1;
  if (b === 0 || a === Infinity) return 0;
  if (x > Math.max(a, 0.1) / (Math.max(a, 0.1) + Math.max(b, 0.1))) return 1 - beta_fraction_(b, a, 1 - x, x);
  return beta_fraction_(a, b, x, 1 - x);
}

function beta_fraction_(a, b, x, y) {
  const steps = Math.ceil(1500 + 10 * Math.sqrt(a + b));
  let f = 1;
  for (let n = steps; n >= 0; n--) {
    const next = ((a + n) * (a + b + n) * (n + 1) * (b - n - 1) * x * x) / (a + 2 * n + 1) ** 2;
    const own = ((a + n) / (a + 2 * n + 1)) * (a * y - b * x + 1 + n * (1 + y));
    f = own + (n ? n + (n * (b - n) * x) / (a + 2 * n - 1) : 0) + (n < steps ? next / f : 0);
  }
  return (x * y * (y < x ? beta_pdf_(b, a, y) : beta_pdf_(a, b, x))) / f;
}
