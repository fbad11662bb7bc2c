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
