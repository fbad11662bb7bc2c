// The page that plays a computation. `rules` holds for each kind of operation [value, partials], or null where
// it cannot be computed here. The steps are those of steps.py, and so are their sentences.
const data = JSON.parse(document.getElementById("data").textContent);
const real = (x) => (typeof x === "string" ? { nan: NaN, inf: Infinity, "-inf": -Infinity }[x] : x);
const { names, formulas, signs, templates } = data.words;
const { kinds, operands, high } = data;
const constants = data.constants.map(real);
const size = names.length, root = size - 1;
const made = [...kinds.keys()].filter((i) => kinds[i] >= 0);
const end = 2 * made.length + 1;
const byId = (id) => document.getElementById(id);
const ids = "first back play on last at count speed assign said view graph reset off leaves about".split(" ");
const ui = Object.fromEntries(ids.map((id) => [id, byId(id)]));
const calm = matchMedia("(prefers-reduced-motion: reduce)");

let values, partials;
let at = 0, timer = 0, zoom = 1;

function restore() {
  values = data.values.map(real);
  partials = data.partials.map((row) => row.map(real));
}

// -- the computation ------------------------------------------------------------------------------------------------

const given = (x) => (x < 0 ? constants[-1 - x] : values[x]);

function recompute() {
  for (const i of made) {
    const [value, slopes] = rules[kinds[i]];
    const xs = operands[i].map(given);
    values[i] = value(...xs);
    partials[i] = slopes(values[i], ...xs);
  }
}

// The gradients after the first `turns` nodes have had their turn on the way back; null: none has arrived yet.
function sweep(turns, assign) {
  const grads = Array(size).fill(null);
  let last = [];
  if (turns > 0) grads[root] = 1;
  for (let k = 1; k < turns; k++) {
    const i = made[made.length - k];
    last = [];
    operands[i].forEach((x, slot) => {
      const partial = partials[i][slot], own = data.own[i]?.[slot];
      if (x < 0 || partial === null) return;
      const before = grads[x], gradient = grads[i] ?? 0;
      let product = partial * gradient;
      grads[x] = assign || own === "=" ? 0 + product : (before ?? 0) + product;
      if (Array.isArray(own)) {
        grads[x] = real(own[0]);
        product = grads[x] - (before ?? 0);
      }
      last.push({ operand: x, slot, partial, product, before, after: grads[x], gradient, own });
    });
  }
  return { grads, last };
}

// -- words ----------------------------------------------------------------------------------------------------------

function number(x) {
  if (!isFinite(x)) return x !== x ? "nan" : x > 0 ? "inf" : "-inf";
  if (x === 0) return "0";
  let [figures, power] = x.toExponential(3).split("e");
  if (power > -5 && power < 4) return String(+x.toPrecision(4));
  return `${figures.replace(/\.?0+$/, "")}e${power[0]}${power.slice(1).padStart(2, "0")}`;
}

const fill = (template, texts) =>
  template.replace(/([@#])(\d+)/g, (_, mark, k) => (mark === "#" && texts[k][0] === "-" ? `(${texts[k]})` : texts[k]));
const times = (x, y) => fill("@0 × #1", [number(x), number(y)]);
const plus = (x, y) => fill("@0 + #1", [number(x), number(y)]);
const called = (i) => (kinds[i] >= 0 && formulas[i] === 0 && /^[@#-]/.test(templates[kinds[i]]) ? `(${names[i]})` : names[i]);

// What happens in the step before position k: a heading, and sentences as lists of [text, emphasis].
function story(k, now) {
  if (k === 0) return { phase: "", node: -1, head: "Press play, or step with the arrow keys", said: [[[`${size} nodes: first forward through every operation, then back from ${names[root]}`]]] };
  if (k <= made.length) {
    const i = made[k - 1], texts = operands[i].map((x) => number(given(x)));
    const parts = [names[i]];
    if (formulas[i] !== 0) parts.push(formulas[i]);
    parts.push(fill(templates[kinds[i]], texts));
    return { phase: "forward", node: i, head: "Forward", said: [[[`${parts.join(" = ")} = `], [number(values[i]), "b"]]] };
  }
  if (k === made.length + 1) return { phase: "backward", node: root, head: "Backward, from the result", said: [[[`grad of ${called(root)} = `], ["1", "b"], [", the derivative of the result by itself"]]] };
  const i = made[end - k];
  const said = now.last.map((c) => {
    if (Array.isArray(c.own)) return [[c.own[1]]];
    const first = c.before === null, product = [number(c.product), "b"];
    const chain = `grad of ${called(i)} × local derivative = ${times(c.gradient, c.partial)} = `;
    const target = `grad of ${called(c.operand)}`;
    if (first) return [[`${target} = ${chain}`], product];
    const why = c.own ? `: the _backward of ${called(i)} has = where += belongs` : "";
    if (ui.assign.checked || c.own) return [[`${target} = ${chain}`], product, [`, and the ${number(c.before)} that it held is lost${why}`, "lost"]];
    return [[`${target} += ${chain}${number(c.product)}, which makes ${plus(c.before, c.product)} = `], [number(c.after), "b"]];
  });
  const formula = formulas[i] === 0 ? names[i] : `${names[i]} = ${formulas[i]}`;
  return { phase: "backward", node: i, head: `Backward through ${formula}`, said: said.length ? said : [[[data.words.idle[i] ?? `${names[i]} has no operand that takes a gradient`]]] };
}

// -- the picture ----------------------------------------------------------------------------------------------------

function svg(name, attributes, parent, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const key in attributes) made.setAttribute(key, attributes[key]);
  if (text !== undefined) made.textContent = text;
  return parent.appendChild(made);
}

function html(name, properties, parent) {
  return parent.appendChild(Object.assign(document.createElement(name), properties));
}

const nodes = [], edges = [], ends = [], stage = {};

function build() {
  const [width, height] = data.size;
  ui.graph.setAttribute("viewBox", `-14 -14 ${width + 28} ${height + 28}`);
  ui.graph.setAttribute("aria-label", `Graph of ${size} nodes`);
  for (const name of ["edges", "nodes", "gains"]) stage[name] = svg("g", {}, ui.graph);
  // A thousand lines side by side would be one grey area.
  stage.edges.setAttribute("stroke-width", size < 500 ? 1.3 : 0.4);
  let route = 0;
  for (let i = 0; i < size; i++) {
    ends[i] = operands[i].map((x) => {
      if (x < 0) return null;
      const [left, top, across] = data.boxes[x], points = data.routes[route++];
      return [left + across, top + high / 2, ...points.slice(0, -1), data.boxes[i][0], points.at(-1)];
    });
    edges[i] = ends[i].map((points) => points && svg("path", { class: "edge", d: curve(points) }, stage.edges));
    const [x, y, wide, pill] = data.boxes[i];
    const g = svg("g", { class: pill ? "node" : "node leaf-node", transform: `translate(${x},${y})` }, stage.nodes);
    const left = pill ? pill - 8 : 0, inner = pill ? pill + 5 : 9;
    const title = svg("title", {}, g);
    svg("rect", { class: "box", x: left, width: wide - left, height: high, rx: 7 }, g);
    if (pill) {
      svg("rect", { class: "op", y: high / 2 - 12, width: pill, height: 24, rx: 12 }, g);
      svg("text", { class: signs[i].length < 3 ? "sign short" : "sign", x: pill / 2, y: high / 2 + (signs[i].length < 3 ? 5 : 4) }, g, signs[i]);
    }
    const name = svg("text", { class: "name", x: inner, y: 17 }, g, names[i]);
    svg("text", { class: "key", x: inner, y: 33 }, g, "data");
    svg("text", { class: "key of", x: inner, y: 49 }, g, "grad");
    const value = svg("text", { class: "num", x: wide - 9, y: 33 }, g);
    const grad = svg("text", { class: "num grad", x: wide - 9, y: 49 }, g);
    g.onclick = () => visit(i);
    nodes[i] = { g, title, name, value, grad, room: wide - inner - 8 };
  }
  for (const { name, room } of nodes) fitInto(name, room);
}

// Fonts differ: a text that would be wider than its box is set more tightly.
function fitInto(text, room) {
  text.removeAttribute("textLength");
  if (text.getComputedTextLength() > room) {
    text.setAttribute("textLength", room);
    text.setAttribute("lengthAdjust", "spacingAndGlyphs");
  }
}

function curve(points) {
  let d = `M${points[0]},${points[1]}`;
  for (let k = 2; k < points.length; k += 2) {
    const [x, y, u, v] = points.slice(k - 2, k + 2), middle = (x + u) / 2;
    d += y !== v ? `C${middle},${y} ${middle},${v} ${u},${v}` : `H${u}`;
  }
  return d;
}

function set(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// -- showing a position ---------------------------------------------------------------------------------------------

function show() {
  const turns = at - made.length, assign = ui.assign.checked;
  const now = sweep(turns, assign), right = assign ? sweep(turns, false).grads : now.grads;
  const { phase, node, head, said } = story(at, now);
  const done = at >= made.length ? Infinity : made[at - 1] ?? -1;
  const fed = new Set(node < 0 || at === made.length + 1 ? [] : operands[node].filter((x) => x >= 0));
  ui.graph.setAttribute("class", phase);
  let wrong = 0;
  for (let i = 0; i < size; i++) {
    const { g, title, value, grad, room } = nodes[i];
    const known = kinds[i] < 0 || i <= done, gradient = now.grads[i], bad = !Object.is(gradient, right[i]) && gradient !== right[i];
    wrong += bad;
    set(value, known ? number(values[i]) : "·");
    set(grad, gradient === null ? "·" : bad ? `${number(gradient)} ≠ ${number(right[i])}` : number(gradient));
    set(title, `${names[i]}: data ${known ? values[i] : "not computed"}, grad ${gradient === null ? "not computed" : gradient}`);
    const classes = `node${kinds[i] < 0 ? " leaf-node" : ""}${known ? "" : " later"}${i === node ? " now" : ""}${fed.has(i) ? " fed" : ""}${bad ? " wrong" : ""}`;
    if (g.getAttribute("class") !== classes) g.setAttribute("class", classes);
    if (bad || grad.hasAttribute("textLength")) fitInto(grad, room);
  }
  for (const edge of stage.edges.querySelectorAll(".hot")) edge.classList.remove("hot");
  stage.gains.replaceChildren();
  for (const edge of fed.size ? edges[node] : []) {
    if (!edge) continue;
    edge.classList.add("hot");
    // It is drawn above the others.
    stage.edges.append(edge);
  }
  if (phase === "backward") gains(node, now.last, assign);
  ui.said.className = phase;
  ui.said.setAttribute("aria-live", timer ? "off" : "polite");
  ui.said.replaceChildren();
  html("h3", { textContent: head }, ui.said);
  for (const sentence of said) {
    const line = html("p", {}, ui.said);
    for (const [text, mark] of sentence) html(mark === "b" ? "b" : "span", { textContent: text, className: mark === "lost" ? mark : "" }, line);
  }
  if (assign) html("p", { className: "lost", textContent: verdict(wrong) }, ui.said);
  ui.at.value = at;
  ui.at.setAttribute("aria-valuetext", `step ${at} of ${end} ${phase}`);
  set(ui.count, `step ${at} of ${end}`);
  ui.first.disabled = ui.back.disabled = at === 0;
  ui.on.disabled = ui.last.disabled = at === end;
  follow(node);
}

function verdict(wrong) {
  if (wrong) return `With = instead of +=, ${wrong} of ${size} gradients ${wrong === 1 ? "is" : "are"} wrong by now.`;
  return at === end ? "Nothing is used twice here: = and += give the same." : "With = instead of +=, no gradient is wrong yet.";
}

// What each operand gains, on the side of its box that the edge leaves free.
function gains(node, last, assign) {
  const heights = {};
  for (const { operand, slot, before, product, own } of last.slice(0, 40)) {
    const [x, y, wide] = data.boxes[operand], route = ends[node][slot];
    const above = (heights[operand] = (heights[operand] ?? 0) + 1), down = route[3] >= route[1];
    const offset = down ? -7 - 14 * (above - 1) : 16 + 14 * (above - 1);
    const sign = assign || own === "=" || before === null ? "=" : "+=";
    svg("text", { class: "gain", x: x + wide + 6, y: y + high / 2 + offset }, stage.gains, `${sign} ${number(product)}`);
  }
}

// Moves the picture so that a node can be seen; before the first step, the left side at the first operation's height.
function follow(node) {
  const start = node < 0, [x, y, wide] = data.boxes[start ? made[0] ?? root : node], view = ui.view, edge = 60;
  const left = (x + 14) * zoom + ui.graph.getBoundingClientRect().left - view.getBoundingClientRect().left + view.scrollLeft;
  const top = (y + 14) * zoom + ui.graph.getBoundingClientRect().top - view.getBoundingClientRect().top + view.scrollTop;
  const hidden = left < view.scrollLeft + edge || left + wide * zoom > view.scrollLeft + view.clientWidth - edge ||
    top < view.scrollTop || top + high * zoom > view.scrollTop + view.clientHeight;
  if (hidden || start) view.scrollTo({ left: start ? 0 : left - (view.clientWidth - wide * zoom) / 2, top: top - (view.clientHeight - high * zoom) / 2, behavior: timer || calm.matches ? "auto" : "smooth" });
}

function scale(to) {
  const [width, height] = data.size;
  zoom = Math.min(Math.max(to, 0.1), 3);
  ui.graph.setAttribute("width", Math.round((width + 28) * zoom));
  ui.graph.setAttribute("height", Math.round((height + 28) * zoom));
}

function fitted() {
  const [width, height] = data.size;
  return Math.min((ui.view.clientWidth - 4) / (width + 28), (ui.view.clientHeight - 4) / (height + 28));
}

// -- moving about ---------------------------------------------------------------------------------------------------

function go(to) {
  at = Math.max(0, Math.min(end, Math.round(to)));
  show();
}

function pause() {
  clearInterval(timer);
  timer = 0;
  ui.play.setAttribute("aria-pressed", "false");
  ui.play.lastChild.textContent = "Play";
  ui.play.querySelector("path").setAttribute("d", "M4 2v12l9-6z");
}

function play() {
  if (timer) return pause();
  if (at === end) at = 0;
  timer = setInterval(() => {
    go(at + 1);
    if (at === end) pause();
  }, +ui.speed.value);
  ui.play.setAttribute("aria-pressed", "true");
  ui.play.lastChild.textContent = "Pause";
  ui.play.querySelector("path").setAttribute("d", "M3 2h4v12H3zM9 2h4v12H9z");
  go(at + 1);
}

function visit(i) {
  if (dragged) return;
  pause();
  if (kinds[i] < 0) byId(`leaf-${i}`)?.focus();
  else go(at > made.length ? end - made.indexOf(i) : made.indexOf(i) + 1);
}

const by = (step) => () => (pause(), go(at + step));
ui.first.onclick = by(-Infinity);
ui.last.onclick = by(Infinity);
ui.back.onclick = by(-1);
ui.on.onclick = by(1);
ui.play.onclick = play;
ui.at.oninput = () => (pause(), go(+ui.at.value));
ui.assign.onchange = show;
ui.speed.onchange = () => timer && (pause(), play());
const zoomTo = (to) => () => ((chosen = true), scale(to()));
byId("in").onclick = zoomTo(() => zoom * 1.25);
byId("out").onclick = zoomTo(() => zoom / 1.25);
byId("fit").onclick = zoomTo(() => Math.min(fitted(), 1.5));
document.onkeydown = (event) => {
  const inField = event.target.matches("input:not(#at), select"), inView = event.target === ui.view && zoom > fitted() * 1.01 && event.shiftKey;
  const moves = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity };
  if (inField && event.target !== ui.assign || inView || event.ctrlKey || event.altKey || event.metaKey) return;
  if (event.key in moves) by(moves[event.key])();
  else if (event.key === " " && !event.target.matches("button, input")) play();
  else return;
  event.preventDefault();
};

// The picture is moved by dragging it.
let grip = null, dragged = false;
ui.view.onpointerdown = (event) => {
  if (event.pointerType !== "mouse" || event.button) return;
  grip = [event.clientX + ui.view.scrollLeft, event.clientY + ui.view.scrollTop];
  dragged = false;
};
window.onpointermove = (event) => {
  if (!grip) return;
  const [left, top] = [grip[0] - event.clientX, grip[1] - event.clientY];
  if (Math.abs(left - ui.view.scrollLeft) + Math.abs(top - ui.view.scrollTop) > 4) dragged = true;
  if (dragged) ui.view.scrollTo(left, top), ui.view.classList.add("dragged");
};
window.onpointerup = () => {
  grip = null;
  ui.view.classList.remove("dragged");
};

// -- the leaves -----------------------------------------------------------------------------------------------------

function sliders() {
  set(ui.off, data.words.off);
  for (let i = 0; i < size; i++) {
    if (kinds[i] >= 0) continue;
    const start = isFinite(values[i]) ? values[i] : 0, span = Math.max(1, 2 * Math.abs(start)), off = !!data.words.off;
    const row = html("div", { className: "leaf" }, ui.leaves);
    html("span", { textContent: names[i], title: names[i] }, row);
    const field = html("input", { type: "number", step: "any", disabled: off, ariaLabel: `${names[i]}, as a number` }, row);
    const range = html("input", { type: "range", min: start - span, max: start + span, step: "any", disabled: off, id: `leaf-${i}`, ariaLabel: names[i] }, row);
    const fresh = () => {
      field.value = +values[i].toPrecision(5);
      range.value = values[i];
    };
    const change = (source) => {
      if (source.value === "") return;
      values[i] = +source.value;
      recompute();
      (source === field ? range : field).value = source === field ? values[i] : +values[i].toPrecision(5);
      ui.reset.disabled = false;
      show();
    };
    field.oninput = () => change(field);
    range.oninput = () => change(range);
    range.onkeydown = (event) => {
      const way = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
      if (!way) return;
      event.preventDefault();
      range.value = +range.value + (way * span) / 50;
      change(range);
    };
    fresh();
    ui.reset.addEventListener("click", fresh);
  }
}

restore();
ui.reset.addEventListener("click", () => (restore(), (ui.reset.disabled = true), show()));
document.querySelector("h1").textContent = document.title;
set(ui.about, data.words.about);
ui.at.max = end;
const [ahead, behind] = document.querySelectorAll("#phases i");
ahead.style.flexGrow = made.length;
behind.style.flexGrow = made.length + 1;
build();
sliders();
// A frame may get its size late.
let wide = 0, chosen = false;
new ResizeObserver(() => {
  if (ui.view.clientWidth !== wide && !chosen) {
    scale(Math.max(Math.min(fitted(), 1.4), 0.8));
    show();
  }
  wide = ui.view.clientWidth;
}).observe(ui.view);
go(+location.hash.slice(1) || 0);
