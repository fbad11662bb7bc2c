// Scalars slide into arrays: the layer of the page about lifting as it is recorded, as it is run, and all between.
const root = document.getElementById("sliding"), drawing = root.querySelector("svg");
const button = root.querySelector("button"), slider = root.querySelector("input"), said = root.querySelector("figcaption");
const LASTS = 2000; // milliseconds from one end to the other
const ROWS = 4, COLUMNS = 3, HIGH = 34;
const STAGES = [
  "Recorded: twelve weights and four biases, each a separate Value, and a sum of products for every neuron.",
  "Grouped: values computed by the same operation from the same kinds of operands come together.",
  "Run: u1 = x @ W1.T + b1, one product for all four neurons and all examples.",
];

const pieces = []; // [element, where it is at first, and in the end, its opacity at first, and in the end]

function piece(kind, text, from, to, [first, last] = [1, 1]) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", "text");
  Object.assign(element, { textContent: text }).setAttribute("class", kind);
  pieces.push([drawing.appendChild(element), from, to, first, last]);
}

const goes = (text, at) => piece("sign", text, at, at, [1, 0]), comes = (kind, text, at) => piece(kind, text, at, at, [0, 1]);
const height = (row) => 26 + HIGH * row, middle = height((ROWS - 1) / 2);

for (let i = 0; i < ROWS; i++) {
  const y = height(i);
  for (let k = 0; k < COLUMNS; k++) {
    const left = 26 + 112 * k;
    piece("weight", +(0.1 * i - 0.2 * k).toFixed(1), [left, y], [44 + 46 * k, y]);
    goes("*", [left + 24, y]);
    piece("input", `x${k}`, [left + 42, y], [208, height(k + 0.5)], [1, i ? 0 : 1]); // of four, one is left
    goes("+", [left + 70, y]);
  }
  piece("weight", +(0.1 * i).toFixed(1), [362, y], [306, y]);
}
for (const [left, right, name] of [[16, 160, "W1"], [184, 232, "x"], [278, 334, "b1"]]) {
  const frame = document.createElementNS("http://www.w3.org/2000/svg", "path"), tall = height(ROWS - 1) + 18;
  frame.setAttribute("d", `M${left + 6},8H${left}V${tall}H${left + 6}M${right - 6},8H${right}V${tall}H${right - 6}`);
  pieces.push([drawing.appendChild(frame), [0, 0], [0, 0], 0, 1]);
  comes("name", name, [(left + right) / 2, tall + 18]);
}
comes("sign", "@", [172, middle]);
comes("sign", "+", [255, middle]);

function show() {
  const share = slider.value / slider.max, gone = (1 - Math.cos(Math.PI * share)) / 2; // slowly at both ends
  const between = (a, b) => a + (b - a) * gone;
  for (const [element, from, to, first, last] of pieces) {
    element.setAttribute("transform", `translate(${between(from[0], to[0])},${between(from[1], to[1])})`);
    element.setAttribute("opacity", between(first, last));
  }
  const stage = STAGES[share === 0 ? 0 : share === 1 ? 2 : 1];
  if (said.textContent !== stage) said.textContent = stage;
  slider.setAttribute("aria-valuetext", stage);
}

let playing = 0;
function stop() {
  cancelAnimationFrame(playing);
  playing = 0;
  button.textContent = "Play";
}

button.onclick = () => {
  if (playing) return stop();
  const begin = +slider.value === +slider.max ? 0 : +slider.value, started = performance.now();
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const move = (now) => {
    slider.value = still ? slider.max : begin + ((now - started) / LASTS) * slider.max;
    show();
    if (+slider.value === +slider.max) stop();
    else playing = requestAnimationFrame(move);
  };
  button.textContent = "Pause";
  playing = requestAnimationFrame(move);
};
slider.oninput = () => (stop(), show());
root.hidden = false;
show();
