// The playground: its setting, which stands in the address, its controls, and what passes between them, the worker in
// which Python trains, and the pictures.
import { Field, Network, Plane, drawLoss, number, palette } from "./drawings.js";
import { Engine, place } from "./engine.js";

const byId = (id) => document.getElementById(`pg-${id}`);
const root = document.getElementById("pg");
const MOST_LAYERS = 4, MOST_NEURONS = 8;
const MOST_STEPS = 5000; // after which it stops by itself, for who has gone away
const calm = matchMedia("(prefers-reduced-motion: reduce)");

// -- the setting ----------------------------------------------------------------------------------------------------

const CHOICES = ["data", "count", "noise", "activation", "rate", "optimizer", "batch", "penalty", "speed"]; // each has its select
const INPUTS = ["x1", "x2", "x1²", "x2²", "x1x2", "sin 3x1", "sin 3x2"];
const BEGIN = {
  data: "moons", count: "60", noise: "0.1", inputs: ["x1", "x2"], layers: [6, 6], activation: "tanh", rate: "0.03", optimizer: "adam",
  batch: "0", penalty: "0", speed: "33", edges: "weight", seed: 1, points: [],
};
const choice = (name) => byId(name === "count" ? "count-of" : name);
const HINT = byId("hint").textContent;
let setting;

const isRegression = () => choice("data").selectedOptions[0].parentElement.label === "Regression";

// The setting of an address: what is not said in it, or is no setting, is as at the beginning.
function read(hash) {
  const given = new URLSearchParams(hash.slice(1)), found = structuredClone(BEGIN);
  for (const name of CHOICES) if ([...choice(name).options].some(({ value }) => value === given.get(name))) found[name] = given.get(name);
  const layers = (given.get("layers") ?? "").split(",").map(Number);
  if (layers.length <= MOST_LAYERS && layers.every((n) => Number.isInteger(n) && n >= 1 && n <= MOST_NEURONS)) found.layers = layers;
  const inputs = (given.get("inputs") ?? "").split(",");
  if (inputs.every((name) => INPUTS.includes(name))) found.inputs = INPUTS.filter((name) => inputs.includes(name));
  if (/^\d{1,9}$/.test(given.get("seed"))) found.seed = +given.get("seed");
  if (given.get("edges") === "gradient") found.edges = "gradient";
  const points = (given.get("points") || "").split(";").filter(Boolean).map((point) => point.split(",").map(Number));
  if (points.every((point) => point.length === 3 && point.every(isFinite))) found.points = points.map(([x, y, label]) => [x, y, label ? 1 : 0]);
  return found;
}

function written() {
  const { points, layers, inputs, ...others } = setting;
  const entries = { ...others, inputs: encodeURIComponent(inputs.join(",")), layers: layers.join(","), ...(points.length ? { points: points.map((point) => point.join(",")).join(";") } : {}) };
  return `#${Object.entries(entries).map(([name, value]) => `${name}=${value}`).join("&")}`;
}

function show() {
  for (const name of CHOICES) choice(name).value = setting[name];
  for (const box of byId("inputs").querySelectorAll("input")) {
    box.checked = setting.inputs.includes(box.value);
    box.disabled = box.checked && setting.inputs.length === 1;
  }
  for (const option of document.getElementsByName("pg-edges")) option.checked = option.value === setting.edges;
  byId("layers").replaceChildren(...setting.layers.map((count, place) => {
    const select = Object.assign(document.createElement("select"), { ariaLabel: `Neurons of hidden layer ${place + 1}` });
    for (let n = 1; n <= MOST_NEURONS; n++) select.add(new Option(n, n, false, n === count));
    select.onchange = () => change({ layers: setting.layers.with(place, +select.value) });
    return select;
  }));
  byId("fewer").disabled = setting.layers.length === 1;
  byId("more").disabled = setting.layers.length === MOST_LAYERS;
  byId("own").hidden = setting.data !== "own";
  for (const name of ["count", "noise"]) choice(name).disabled = setting.data === "own";
  byId("tests-label").hidden = setting.data === "own";
  const regression = isRegression();
  root.classList.toggle("regression", regression);
  [byId("low").textContent, byId("high").textContent] = regression ? ["−1", "1"] : ["certainly orange", "certainly blue"];
  byId("tests-look").textContent = `show the held-out points (${regression ? "small" : "hollow"})`;
}

const LIVE = ["edges", "speed", "rate"]; // what can be changed without beginning anew

function change(wish) {
  setting = { ...setting, ...wish };
  history.replaceState(null, "", written());
  show();
  if (Object.keys(wish).some((name) => !LIVE.includes(name))) begin(playing);
  else if ("rate" in wish) ask("set_rate", +setting.rate).catch(failed);
  else if ("speed" in wish && playing) play();
  redraw();
}

// -- the worker -----------------------------------------------------------------------------------------------------

const runtime = place(root.dataset.runtime);
const engine = new Engine(new URL("worker.js", import.meta.url), runtime, (frame) => arrived(frame), (error) => missing(error));
const { ask } = engine;

function failed(error, advice = "") {
  playing = false;
  button();
  byId("status").hidden = false;
  byId("status").textContent = `The playground cannot go on: ${error.message}. ${advice}`;
}

const missing = (error) => failed(error, `It needs a browser from 2024 or later, and downloads Python from ${runtime.host}.`);

// -- training -------------------------------------------------------------------------------------------------------

let X = [], Y = [], held = [[], []], names = [], numbers = new Float64Array(0), losses = [], forward = null, measure = null;
let tested = []; // of some steps the loss on what is held out: [step, loss]
let inputs = 2, hidden = 0, activation = "", regression = false; // of the network that there is, which a setting may be ahead of
let playing = false, until = 0, generation = 0, begun = 0, example = 0, chosen = null;

async function begin(goOn) {
  const mine = ++generation;
  halt();
  const { layers } = setting, examples = setting.data === "own" ? classified(setting.points) : setting.data;
  const problem = isRegression() ? "regression" : "classification", taught = [setting.activation, setting.optimizer, +setting.rate, setting.seed, setting.inputs, +setting.batch, +setting.penalty];
  const made = await ask("make", examples, +setting.count, +setting.noise, problem, layers, ...taught);
  if (mine !== generation) return;
  ({ X, Y, held, names, numbers } = made);
  [losses, tested, example, chosen] = [[], [], 0, null];
  begun = mine;
  if (goOn && X.length) play(); // while what follows is drawn
  [forward, measure] = [made.forward, made.measure].map((text) => new Function(text)());
  hidden = layers.reduce((a, b) => a + b, 0);
  [inputs, activation, regression] = [setting.inputs.length, setting.activation, problem === "regression"];
  network.build(layers, names, setting.inputs);
  for (const name of ["why", "explained", "steps", "chosen"]) byId(name).hidden = true;
  byId("hint").textContent = HINT;
  for (const name of ["explained", "diagnosis"]) byId(name).textContent = "";
  button();
  if (!playing) redraw(); // else the first step is drawn, which is under way
}

const classified = (points) => [points.map(([x, y]) => [x, y]), points.map(([, , label]) => label)];

function arrived(frame) {
  if (!losses.length) performance.mark("wengert-first-step");
  losses.push(...frame.losses);
  numbers = frame.numbers;
  if (playing && (losses.length >= until || !isFinite(losses.at(-1)))) stop();
  redraw();
}

function play() {
  byId("status").hidden = true;
  if (!playing) until = losses.length + MOST_STEPS;
  playing = true;
  button();
  ask("play", +setting.speed).catch(failed);
}

// The same, for what goes on at once, and for what stays as it is.
function halt() {
  playing = false;
  button();
  return ask("stop").catch(failed);
}

function stop() {
  halt();
  diagnose().catch(failed);
}

function button() {
  byId("play").textContent = playing ? "Pause" : "Play";
  const ready = forward && X.length > 0;
  for (const name of ["play", "step"]) byId(name).disabled = !ready;
  for (const name of ["reset", "new"]) byId(name).disabled = !forward;
}

// -- one's own points -----------------------------------------------------------------------------------------------

let cursor = null; // where the arrow keys have moved to

function setPoints(points) {
  setting = { ...setting, points };
  history.replaceState(null, "", written());
  [X, Y] = classified(points);
  example = Math.max(0, points.length - 1);
  if (!points.length) halt();
  button();
  ask("learn_from", X, Y).catch(failed);
  redraw();
}

function addPoint(point) {
  const label = +document.querySelector("[name=pg-class]:checked").value;
  setPoints([...setting.points, [...point.map((x) => +x.toFixed(2)), label]]);
}

// -- why ------------------------------------------------------------------------------------------------------------

let shown = "";

async function why(name) {
  if (!X.length) return;
  chosen = name;
  halt();
  redraw();
  const mine = generation, [text, page, at] = await ask("why", name, example);
  if (mine !== generation) return;
  byId("explained").textContent = `Example ${example + 1}, after ${losses.length} steps.\n${text}`;
  URL.revokeObjectURL(shown);
  shown = URL.createObjectURL(new Blob([page], { type: "text/html" }));
  byId("steps").src = `${shown}#${at}`;
  for (const part of ["why", "explained", "steps", "chosen"]) byId(part).hidden = false;
  byId("value-name").textContent = name;
  byId("value").value = +numbers[names.indexOf(name)].toPrecision(5);
  byId("hint").textContent = `Why ${name} has its gradient for example ${example + 1} is said below; the steps that lead to it play at the end of the page.`;
}

byId("to-steps").onclick = () => {
  byId("steps").focus({ preventScroll: true });
  byId("steps").scrollIntoView({ behavior: calm.matches ? "auto" : "smooth" });
};
byId("value").onchange = async ({ target }) => {
  if (target.value === "" || !chosen) return;
  numbers = await ask("set_parameter", chosen, +target.value).catch(failed) ?? numbers;
  redraw();
  why(chosen).catch(failed);
};
// The page of steps says how high it is.
addEventListener("message", ({ data, source }) => {
  if (source === byId("steps").contentWindow && data?.wengert > 0) byId("steps").style.height = `${data.wengert + 2}px`;
});

// -- what is the matter with it -------------------------------------------------------------------------------------

// Where an activation is flat: its slope is less than a twentieth of its greatest.
const FLAT = {
  relu: [(out) => out <= 0, "dead"],
  tanh: [(out) => 1 - out * out < 0.05, "saturated"],
  sigmoid: [(out) => 4 * out * (1 - out) < 0.05, "saturated"],
};
const AGAIN = 2000; // milliseconds until it is diagnosed anew
let diagnosed = 0;

// What the network gives for a point: its inputs, then every neuron; the last is the output.
function given(x1, x2) {
  const out = new Float64Array(inputs + hidden + 1);
  forward(numbers, x1, x2, out);
  return out;
}

// The hidden neurons that are flat for every example, and of how many examples the side is right.
function examined() {
  const [isFlat, called] = FLAT[activation] ?? [() => false], flat = Array(hidden).fill(X.length > 0);
  let right = 0;
  X.forEach(([x1, x2], i) => {
    const out = given(x1, x2);
    for (let k = 0; k < hidden; k++) flat[k] &&= isFlat(out[inputs + k]);
    right += Y[i] ? out.at(-1) > 0 : out.at(-1) < 0;
  });
  return { right, marks: flat.map((is) => (is ? called : null)) };
}

// Of the points that are held out: the mean loss, and of how many the side is right.
function held_out() {
  const [points, targets] = held, out = [0];
  let loss = 0, right = 0;
  points.forEach(([x1, x2], i) => {
    const z = given(x1, x2).at(-1);
    measure(z, targets[i], out);
    loss += out[0];
    right += targets[i] ? z > 0 : z < 0;
  });
  return { loss: loss / points.length, right, of: points.length };
}

async function diagnose() {
  if (!losses.length) return;
  diagnosed = performance.now();
  const mine = generation, said = await ask("diagnosis");
  if (mine === generation && byId("diagnosis").textContent !== said) byId("diagnosis").textContent = said; // else it is told again
}

// -- drawing --------------------------------------------------------------------------------------------------------

const field = new Field(), plane = new Plane(byId("plane")), network = new Network(byId("net"), redraw, (name) => why(name).catch(failed));
let colours = palette(root), due = false, drawn = 0;

function redraw() {
  if (!due) requestAnimationFrame(draw);
  due = true;
}

function draw() {
  due = false;
  if (!forward) return;
  drawn++;
  const half = names.length;
  field.fill(forward, numbers, inputs + hidden + 1, network.enlarged());
  const { right, marks } = examined();
  const own = setting.data === "own", onPlane = document.activeElement === byId("plane");
  plane.draw(field, X, Y, example, own && onPlane ? (cursor ??= [0, 0]) : null, colours, byId("tests").checked ? held : [[], []], regression);
  const gradient = setting.edges === "gradient";
  const largest = network.draw(gradient ? numbers.subarray(half) : numbers, field, marks, chosen, colours);
  byId("net").classList.toggle("flowing", gradient);
  byId("key").textContent = `Blue is positive, orange negative; the widest line is ${number(largest)}.${gradient && largest ? " Gradients flow back from the loss." : ""}`;
  const test = held_out();
  if (test.of && losses.length && tested.at(-1)?.[0] !== losses.length) tested.push([losses.length, test.loss]);
  drawLoss(byId("loss"), losses, tested);
  byId("held").textContent = test.of ? `Held out (dashed): loss ${number(test.loss)}${regression ? "" : `, ${test.right} of ${test.of} right`}.` : "";
  byId("count").textContent = `step ${losses.length}${losses.length ? ` · loss ${number(losses.at(-1))}${regression ? "" : ` · ${right} of ${X.length} right`}` : ""} · ${half} parameters`;
  told(network.seen?.name);
  describe();
  if (chosen && document.activeElement !== byId("value")) byId("value").value = +numbers[names.indexOf(chosen)].toPrecision(5);
  const count = marks.filter(Boolean).length, word = marks.find(Boolean);
  byId("marks").textContent = count ? `${count} of ${hidden} hidden neurons ${count > 1 ? "are" : "is"} ${word}: flat for every example.` : "";
  if (playing && performance.now() - diagnosed > AGAIN) diagnose().catch(failed);
}

// Of the weight that is looked at, else of the one that was explained.
function told(name = chosen) {
  const place = names.indexOf(name);
  byId("weight").textContent = place < 0 ? " " : `${name} = ${number(numbers[place])}, gradient of the mean loss ${number(numbers[place + names.length])}`;
  network.enlarge(byId("large"), field, colours);
}

function describe() {
  const text = byId("example");
  if (!X.length) text.textContent = "Click to add points, some blue and some orange. Then press Play.";
  else {
    const [x1, x2] = X[example], output = given(x1, x2).at(-1);
    const share = 100 / (1 + Math.exp(-Math.abs(output))), side = output > 0 ? "blue" : "orange";
    const said = share >= 50 ? `${side}, ${share > 99.9 ? "over 99.9" : share.toFixed(share > 99 ? 1 : 0)} %` : "nan";
    const target = regression ? `y = ${number(Y[example])}` : Y[example] ? "blue" : "orange";
    text.textContent = `Example ${example + 1}: x1 = ${number(x1)}, x2 = ${number(x2)}, ${target}. The network says ${regression ? number(output) : said}.`;
  }
}

// -- controls -------------------------------------------------------------------------------------------------------

for (const name of CHOICES) choice(name).onchange = ({ target }) => change({ [name]: target.value });
for (const name of INPUTS) {
  const label = document.createElement("label"), box = Object.assign(document.createElement("input"), { type: "checkbox", value: name });
  box.onchange = () => change({ inputs: INPUTS.filter((other) => (other === name ? box.checked : setting.inputs.includes(other))) });
  label.append(box, name);
  byId("inputs").append(label);
}
byId("tests").onchange = redraw;
for (const option of document.getElementsByName("pg-edges")) option.onchange = () => change({ edges: option.value });
byId("fewer").onclick = () => change({ layers: setting.layers.slice(0, -1) });
byId("more").onclick = () => change({ layers: [...setting.layers, setting.layers.at(-1)] });
byId("play").onclick = () => (playing ? stop() : play());
byId("step").onclick = async () => {
  halt();
  await ask("step").catch(failed);
  diagnose().catch(failed);
};
byId("reset").onclick = () => begin(false).catch(failed);
byId("new").onclick = () => change({ seed: setting.seed + 1 });
byId("undo").onclick = () => setPoints(setting.points.slice(0, -1));
byId("clear").onclick = () => setPoints([]);

for (const button of document.querySelectorAll(".pg-try"))
  button.onclick = () => {
    location.hash = button.dataset.setting;
    root.scrollIntoView({ behavior: calm.matches ? "auto" : "smooth" });
  };

byId("plane").onpointermove = (event) => {
  const [x, y] = plane.under(event), far = X.map(([u, v]) => Math.hypot(u - x, v - y));
  example = Math.max(0, far.indexOf(Math.min(...far)));
  redraw();
};
byId("plane").onclick = (event) => (setting.data === "own" ? addPoint(plane.under(event)) : byId("plane").onpointermove(event));
byId("plane").onfocus = byId("plane").onblur = redraw;
byId("plane").onkeydown = (event) => {
  const way = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
  const own = setting.data === "own";
  if (way && own) cursor = cursor.map((x, i) => Math.max(-1.8, Math.min(1.8, +(x + 0.1 * way[i]).toFixed(2))));
  else if (way) example = (example + way[0] + way[1] + X.length) % X.length;
  else if (own && (event.key === "Enter" || event.key === " ")) addPoint(cursor);
  else return;
  event.preventDefault();
  redraw();
};

const scheme = () => ((colours = palette(root)), redraw());
new MutationObserver(scheme).observe(document.body, { attributeFilter: ["data-theme"] });
matchMedia("(prefers-color-scheme: dark)").onchange = scheme;
let wide = 0;
new ResizeObserver(() => {
  if (byId("net").clientWidth === wide) return;
  wide = byId("net").clientWidth;
  if (forward) network.build();
  redraw();
}).observe(byId("net"));
document.onvisibilitychange = () => document.hidden && playing && stop();
window.onhashchange = () => {
  if (!location.hash.includes("=")) return; // a heading
  setting = read(location.hash);
  show();
  begin(playing || !calm.matches).catch(failed);
};

// -- the beginning --------------------------------------------------------------------------------------------------

setting = read(location.hash);
show();
engine.ready
  .then(() => {
    byId("status").textContent = "Ready: press Play to train.";
    return begin(false);
  }, missing)
  .catch(failed);

// For the curious, and for tests: what is drawn, in numbers.
globalThis.playground = {
  state: () => ({ setting, names, numbers: [...numbers], losses, tested, example, begun, drawn, playing }),
  at: (x1, x2) => [...given(x1, x2)].slice(inputs),
};
