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
Object.assign(ui, found("by assign step curves view graph reset off against h ratio leaves"));
// Nodes of a layer that are told one by one.
const MANY = 6;
// Of a page in a page the height follows the picture, which may be as high as this; a picture that would have to be
// made smaller than this to be seen as a whole is opened at a size at which it can be read.
const HIGHEST = 480, SMALLEST = 0.2, READABLE = 0.72, FAR = 0.5;
const delay = () => +ui.speed.value;

let values, partials;
let zoom = 1, chosen = kinds.indexOf(-1);

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

// The gradients after the first `turns` nodes have had their turn on the way back, null where none has arrived yet; and
// what each of these turns did.
function sweep(turns, assign) {
  const grads = Array(size).fill(null), moves = [[]];
  if (turns > 0) grads[root] = 1;
  for (let k = 1; k < turns; k++) {
    const i = made[made.length - k], done = [];
    moves.push(done);
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
      done.push({ operand: x, slot, partial, product, before, after: grads[x], gradient, own });
    });
  }
  return { grads, moves };
}

// The result, and with it every other number, if a leaf were x.
function resultAt(leaf, x) {
  const kept = values;
  values = values.slice();
  values[leaf] = x;
  for (const i of made) values[i] = rules[kinds[i]][0](...operands[i].map(given));
  const result = values[root];
  values = kept;
  return result;
}

// -- words ----------------------------------------------------------------------------------------------------------

function number(x) {
  if (!isFinite(x)) return x !== x ? "nan" : x > 0 ? "inf" : "-inf";
  if (x === 0) return "0";
  const size = Math.abs(x);
  if (size >= 9999.5 && size < 9999999.5) return String(+x.toPrecision(7));
  let [figures, power] = x.toExponential(3).split("e");
  if (power > -5 && power < 4) return String(+x.toPrecision(4));
  return `${figures.replace(/\.?0+$/, "")}e${power[0]}${power.slice(1).padStart(2, "0")}`;
}

const closed = (text) => (text[0] === "-" ? `(${text})` : text);
const fill = (template, texts, enclosed = texts.map(closed)) => template.replace(/([@#])(\d+)/g, (_, mark, k) => (mark === "#" ? enclosed : texts)[k]);
const times = (x, y) => fill("@0 × #1", [number(x), number(y)]);
const plus = (x, y) => fill("@0 + #1", [number(x), number(y)]);
const called = (i) => (kinds[i] >= 0 && formulas[i] === 0 && /^[@#-]/.test(templates[kinds[i]]) ? `(${names[i]})` : names[i]);

// A local derivative as the rule has it, over the names of the operands and over their numbers.
function ruleOf(i, slot) {
  const rule = kinds[i] < 0 ? "" : data.words.rules[kinds[i]][slot], partial = partials[i][slot];
  if (!rule || !(partial === partial)) return "";
  const whole = formulas[i] || names[i], xs = operands[i];
  const symbols = xs.map((x) => (x < 0 ? number(given(x)) : names[x])), safe = xs.map((x) => (x < 0 ? closed(number(given(x))) : called(x)));
  const parts = [fill(rule, [...symbols, whole], [...safe, whole]), fill(rule, [...xs.map((x) => number(given(x))), number(values[i])])];
  return [...new Set([...parts, number(partial)])].join(" = ");
}

// What happens in the step before position k: a heading, and sentences as lists of [text, emphasis].
function story(k, now) {
  const last = now.moves[k - made.length - 1] ?? [];
  if (k === 0) return { phase: "", node: -1, head: "Press play, or step with the arrow keys", said: [[[`${size} nodes: first forward through every operation, then back from ${names[root]}`]]] };
  if (k <= made.length) {
    const i = made[k - 1], texts = operands[i].map((x) => number(given(x)));
    const parts = [names[i]];
    if (formulas[i] !== 0) parts.push(formulas[i]);
    parts.push(fill(templates[kinds[i]], texts));
    return { phase: "forward", node: i, head: "Forward", said: [[[`${parts.join(" = ")} = `], [number(values[i]), "b"]]] };
  }
  if (k === made.length + 1) return { phase: "backward", node: root, head: "Backward, from the result", said: [[[`grad of ${called(root)} = `], ["1", "b"], [", the derivative of the result with respect to itself"]]] };
  const i = made[end - k];
  const said = last.map((c) => {
    if (Array.isArray(c.own)) return [[c.own[1]]];
    const first = c.before === null, product = [number(c.product), "b"];
    const chain = `grad of ${called(i)} × local derivative = ${times(c.gradient, c.partial)} = `;
    const target = `grad of ${called(c.operand)}`;
    if (first) return [[`${target} = ${chain}`], product];
    const why = c.own ? `: the _backward of ${called(i)} has = instead of +=` : "";
    if (ui.assign.checked || c.own) return [[`${target} = ${chain}`], product, [`, and its former ${number(c.before)} is lost${why}`, "lost"]];
    return [[`${target} += ${chain}${number(c.product)}, which makes ${plus(c.before, c.product)} = `], [number(c.after), "b"]];
  });
  const formula = formulas[i] === 0 ? names[i] : `${names[i]} = ${formulas[i]}`;
  return { phase: "backward", node: i, head: `Backward through ${formula}`, said: said.length ? said : [[[data.words.idle[i] ?? `${names[i]} has no operands to pass its gradient on to`]]] };
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
    const g = svg("g", { class: pill ? "node" : "node leaf-node", transform: `translate(${x},${y})`, role: "button", tabindex: i ? -1 : 0 }, stage.nodes);
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
    g.onkeydown = (event) => overGraph(event, i);
    g.onfocus = () => stop(i);
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

// -- showing a position ---------------------------------------------------------------------------------------------

const turnOf = (k) => (k <= made.length ? made[k - 1] : made[end - k]);
const layerOf = (k) => (k === 0 || k === made.length + 1 ? -k : `${k > made.length}${data.layers[turnOf(k)]}`);

// The positions that are shown together at position k: itself, or its layer so far.
function together(k) {
  let first = k;
  while (ui.by.value === "layer" && first > 1 && layerOf(first - 1) === layerOf(k)) first--;
  return Array.from({ length: k - first + 1 }, (_, n) => first + n);
}

function show(moving) {
  const assign = ui.assign.checked, now = sweep(at - made.length, assign), right = sweep(assign ? at - made.length : 0, false).grads;
  const run = together(at), stories = run.map((k) => story(k, now)), { phase, node } = stories.at(-1);
  const done = at >= made.length ? Infinity : made[at - 1] ?? -1;
  const active = new Set(stories.map((s) => s.node)), passing = at === made.length + 1 ? [] : stories.map((s) => s.node).filter((i) => i >= 0);
  const fed = new Set(passing.flatMap((i) => operands[i].filter((x) => x >= 0)));
  ui.graph.setAttribute("class", phase + (far ? " far" : ""));
  stage.gains.replaceChildren();
  let wrong = 0;
  for (let i = 0; i < size; i++) {
    const { g, title, value, grad, room } = nodes[i];
    const known = kinds[i] < 0 || i <= done, gradient = now.grads[i], bad = assign && !Object.is(gradient, right[i]) && gradient !== right[i];
    wrong += bad;
    set(value, known ? number(values[i]) : "·");
    set(grad, gradient === null ? "·" : number(gradient));
    const told = `${names[i]}: data ${known ? values[i] : "not computed"}, grad ${gradient === null ? "not computed" : gradient}`;
    set(title, told);
    const classes = `node${kinds[i] < 0 ? " leaf-node" : ""}${known ? "" : " later"}${active.has(i) ? " now" : ""}${fed.has(i) ? " fed" : ""}${bad ? " wrong" : ""}`;
    if (g.getAttribute("class") !== classes) g.setAttribute("class", classes);
    if (bad) svg("text", { class: "should", x: data.boxes[i][0] + data.boxes[i][2] - 9, y: data.boxes[i][1] + high + 12, "text-anchor": "end" }, stage.gains, `should be ${number(right[i])}`);
    if (far || grad.hasAttribute("textLength")) fitInto(grad, room);
    if (far) fitInto(value, room);
  }
  for (const edge of stage.edges.querySelectorAll(".hot")) edge.classList.remove("hot");
  for (const edge of passing.flatMap((i) => edges[i])) {
    if (!edge) continue;
    edge.classList.add("hot");
    // It is drawn above the others.
    stage.edges.append(edge);
  }
  const travels = moving && !calm.matches && +ui.speed.value > 200;
  if (phase === "backward" && at > made.length + 1) gains(run.flatMap((k) => now.moves[k - made.length - 1].map((c) => ({ ...c, node: turnOf(k) }))), assign, travels);
  if (travels && passing.length) travel(passing, phase === "backward" ? now.moves[at - made.length - 1] : null);
  ui.step.className = phase;
  ui.said.replaceChildren();
  let first = null;
  stories.slice(0, MANY).forEach(({ head, said, node: i }, n) => {
    if (n === 0 || head !== stories[n - 1].head) html("h2", { textContent: head }, ui.said);
    said.forEach((sentence, m) => {
      const line = html("p", {}, ui.said);
      for (const [text, mark] of sentence) html(mark === "b" ? "b" : "span", { textContent: text, className: mark === "lost" ? mark : "" }, line);
      const move = now.moves[run[n] - made.length - 1]?.[m], rule = move && !Array.isArray(move.own) && ruleOf(i, move.slot);
      if (rule) html("small", { className: "rule", textContent: `local derivative: ${rule}` }, ui.said);
      if (move?.operand === chosen) first ??= line;
    });
  });
  // Of many sentences that about the leaf which was chosen last is to be seen.
  ui.said.scrollTop = first ? first.offsetTop - ui.said.offsetTop - 28 : 0;
  if (stories.length > MANY) html("p", { textContent: `and ${stories.length - MANY} more nodes of this layer` }, ui.said);
  if (assign) html("p", { className: "lost", textContent: verdict(wrong) }, ui.said);
  curves(node, at);
  shown(`step ${at} of ${end}`, `step ${at} of ${end} ${phase}`);
  follow(node);
}

function verdict(wrong) {
  if (wrong) return `With = instead of +=, ${wrong} of ${size} gradients ${wrong === 1 ? "is" : "are"} wrong by now.`;
  return at === end ? "Nothing is used twice here: = and += give the same." : "With = instead of +=, no gradient is wrong yet.";
}

// What each operand gains, on the side of its box that the edge leaves free; at the operator, by what it multiplies.
function gains(moves, assign, late) {
  const heights = {}, factors = [0, 0];
  for (const { node, operand, slot, partial, before, product, own } of moves.slice(0, 40)) {
    const [x, y, wide] = data.boxes[operand], route = ends[node][slot], [u, v] = route.slice(-2);
    const above = (heights[operand] = (heights[operand] ?? 0) + 1), down = route[3] >= route[1];
    const offset = down ? -7 - 14 * (above - 1) : 16 + 14 * (above - 1);
    const sign = assign || own === "=" || before === null ? "=" : "+=";
    svg("text", { class: late ? "gain coming" : "gain", x: x + wide + 6, y: y + high / 2 + offset }, stage.gains, `${sign} ${number(product)}`);
    if (moves.length > 3 || Array.isArray(own)) continue;
    const below = route[1] >= v, turn = factors[+below]++;
    svg("text", { class: "gain factor", x: u + 10, y: v + (below ? 26 + 13 * turn : -18 - 13 * turn) }, stage.gains, fill("× #0", [number(partial)]));
  }
}

// Numbers on their way: forward those of the operands; backward a gradient, which the operator multiplies first.
let journey = 0;
function travel(passing, moves) {
  const tokens = [];
  for (const i of passing)
    (moves ?? operands[i].map((operand, slot) => ({ operand, slot }))).slice(0, 8).forEach(({ operand, slot, product, gradient, partial }, k) => {
      const path = edges[i][slot];
      if (operand < 0 || !path) return;
      const first = moves ? fill("@0 × #1", [number(gradient), number(partial)]) : number(values[operand]);
      tokens.push({ k, path, long: path.getTotalLength(), then: moves ? number(product) : first, text: svg("text", { class: "token" }, stage.gains, first) });
    });
  const mine = ++journey, begun = performance.now(), lasts = Math.min(1000, ui.speed.value * 0.7);
  const move = (time) => {
    const share = Math.min((time - begun) / lasts, 1), gone = moves ? Math.max(share - 0.35, 0) / 0.65 : share;
    if (mine !== journey || share === 1) return tokens.forEach(({ text }) => text.remove());
    for (const { k, path, long, text, then } of tokens) {
      const { x, y } = path.getPointAtLength(long * (moves ? 1 - gone : gone));
      text.setAttribute("x", x);
      // At the operator they stand one above the other.
      text.setAttribute("y", y - 8 - (moves ? 15 * k * (1 - gone) : 0));
      if (gone > 0) set(text, then);
    }
    requestAnimationFrame(move);
  };
  requestAnimationFrame(move);
}

// -- curves ---------------------------------------------------------------------------------------------------------

// The curve of f around x, with the lines through its point there: of each its slope and its class. The secant goes on
// through the point at x + h.
function plot(parent, f, x, lines, told, below, left, h) {
  const [wide, tall] = [200, 118], span = Math.max(1.5, 1.5 * Math.abs(x)), y = f(x), points = [];
  if (!isFinite(x) || !isFinite(y)) return;
  for (let k = -30; k <= 30; k++) points.push([x + (span * k) / 30, f(x + (span * k) / 30)]);
  const heights = points.map(([, v]) => v).filter(isFinite), most = Math.max(...heights), least = Math.min(...heights);
  const reach = Math.abs(lines[0]?.[0] || 0) * span || most - least || 1;
  let low = Math.max(least, y - 1.2 * reach), top = Math.min(most, y + 1.2 * reach);
  if (!(top - low > 1e-9 * Math.abs(y))) [low, top] = [y - 1, y + 1];
  const across = (u) => ((u - x) / span + 1) * (wide / 2), up = (v) => 24 + (1 - (v - low) / (top - low)) * (tall - 48), near = (v) => Math.max(-999, Math.min(999, up(v)));
  const drawn = svg("svg", { class: "plot", viewBox: `0 0 ${wide} ${tall}`, width: wide, height: tall, role: "img", "aria-label": told }, parent);
  if (x - span < 0 && x + span > 0) svg("path", { class: "axis", d: `M${across(0)},0V${tall}` }, drawn);
  svg("path", { class: "axis", d: `M0,${near(0)}H${wide}` }, drawn);
  let pen = "M";
  const d = points.map(([u, v]) => (isFinite(v) ? [`${pen}${across(u).toFixed(1)},${near(v).toFixed(1)}`, (pen = "L")][0] : ((pen = "M"), ""))).join("");
  svg("path", { d }, drawn);
  for (const [slope, kind] of lines) if (isFinite(slope)) svg("path", { class: kind, d: `M0,${near(y - slope * span)}L${wide},${near(y + slope * span)}` }, drawn);
  svg("circle", { cx: wide / 2, cy: up(y), r: 4.5 }, drawn);
  if (h && isFinite(f(x + h))) svg("circle", { class: "second", cx: across(x + h), cy: near(f(x + h)), r: 3.5 }, drawn);
  for (const [top, tall] of [[0, 18], [100, 18]]) svg("rect", { y: top, width: wide, height: tall }, drawn);
  svg("text", { x: wide - 6, y: tall - 6, "text-anchor": "end" }, drawn, below);
  svg("text", { x: 6, y: 14 }, drawn, left);
  for (const text of drawn.querySelectorAll("text")) fitInto(text, wide - 12);
}

// A node over each of its operands, the others held; on the way back with the tangents, and the secants that they are
// the ends of.
function curves(node, k) {
  ui.curves.replaceChildren();
  again = () => curves(node, k);
  const rule = rules[kinds[node]], back = k > made.length + 1;
  if (!rule || k === made.length + 1) return;
  const slots = operands[node].map((x, slot) => slot).filter((slot) => operands[node][slot] >= 0 && partials[node][slot] !== null);
  slots.sort((a, b) => (operands[node][b] === chosen) - (operands[node][a] === chosen));
  for (const slot of slots.slice(0, innerWidth > 1100 ? 2 : 1)) {
    const xs = operands[node].map(given), over = names[operands[node][slot]], slope = partials[node][slot];
    const f = (x) => rule[0](...xs.map((other, n) => (n === slot ? x : other)));
    const x = xs[slot], h = back ? +ui.h.value : 0, ratio = (f(x + h) - f(x)) / h, secant = h ? `, of the secant ${number(ratio)}` : "";
    const tangent = back ? `, its slope there is ${number(slope)}${secant}` : "";
    const lines = back ? [[slope, "tangent"], ...(h ? [[ratio, "secant"]] : [])] : [];
    plot(ui.curves, f, x, lines, `${names[node]} over ${over}, which is ${number(x)}${tangent}`, `${over} = ${number(x)}`, back ? `slope ${number(slope)}${secant}` : names[node], h);
  }
}
let again = () => {};

// The result over the leaf that was chosen last: its slope is the gradient. A secant shows how that comes about.
function effect() {
  ui.against.replaceChildren();
  const off = data.words.off || !isFinite(values[chosen]);
  ui.h.parentElement.hidden = ui.ratio.hidden = !!off;
  if (off) return;
  const gradient = sweep(made.length + 1, false).grads[chosen] ?? 0, found = ui.assign.checked ? sweep(made.length + 1, true).grads[chosen] ?? 0 : gradient;
  const x = values[chosen], h = +ui.h.value, f = (u) => resultAt(chosen, u), ratio = (f(x + h) - f(x)) / h;
  const lines = [[gradient, "tangent"], ...(found !== gradient ? [[found, "false"]] : []), ...(h ? [[ratio, "secant"]] : [])];
  plot(ui.against, f, x, lines, `${names[root]} over ${names[chosen]}: the slope of its tangent is the gradient, ${number(gradient)}`, `${names[chosen]} = ${number(x)}`, `${names[root]}, slope ${number(gradient)}`, h);
  const secant = h ? `slope of the secant, h = ${number(h)}: ${number(ratio)}` : "The slope of the tangent is the gradient. Move h for secants.";
  set(ui.ratio, found !== gradient ? `With = it would be ${number(found)}, which is no tangent.` : secant);
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

// Where the picture is small, a box shows its name and one of its numbers, in large letters.
let far = false;
function scale(to) {
  const [width, height] = data.size;
  zoom = Math.min(Math.max(to, 0.1), 3);
  if (far !== zoom < FAR) {
    far = zoom < FAR;
    ui.graph.classList.toggle("far", far);
    for (const { name, value, grad, room } of nodes) {
      for (const [text, near, low] of [[name, 17, 23], [value, 33, 48], [grad, 49, 48]]) text.setAttribute("y", far ? low : near);
      for (const text of [name, value, grad]) fitInto(text, room);
    }
  }
  ui.graph.setAttribute("width", Math.round((width + 28) * zoom));
  ui.graph.setAttribute("height", Math.round((height + 28) * zoom));
  ui.view.style.height = stacked() ? `${Math.min(Math.ceil((height + 28) * zoom) + 4, highest())}px` : "";
}

// Whether the picture has a height of its own, and not what the window leaves.
const stacked = () => framed || innerWidth <= 760;
const highest = () => (framed ? HIGHEST : innerHeight * 0.56);

function fitted() {
  const [width, height] = data.size, tall = stacked() ? highest() : ui.view.clientHeight;
  return Math.min((ui.view.clientWidth - 4) / (width + 28), (tall - 4) / (height + 28));
}

// -- moving about ---------------------------------------------------------------------------------------------------

function go(to) {
  const from = at;
  at = Math.max(0, Math.min(end, Math.round(to)));
  show(at > from && together(at).includes(from + 1));
}

// A step on or back: of a node, or to the end of a layer.
function by(way) {
  let to = at + way;
  if (ui.by.value === "layer" && way < 0) to -= together(at).length - 1;
  else if (ui.by.value === "layer") while (to < end && layerOf(to + 1) === layerOf(to)) to++;
  go(to);
}

function visit(i) {
  if (dragged) return;
  pause();
  if (kinds[i] < 0) byId(`leaf-${i}`)?.focus();
  else go(at > made.length ? end - made.indexOf(i) : made.indexOf(i) + 1);
}

// One node can be reached by Tab, and from it, by the arrow keys, that which is the nearest in their direction.
function stop(i) {
  for (const { g } of nodes) if (g.tabIndex === 0) g.tabIndex = -1;
  nodes[i].g.tabIndex = 0;
}

function overGraph(event, i) {
  const ways = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }, way = ways[event.key];
  if (event.ctrlKey || event.altKey || event.metaKey || !(way || event.key === "Enter" || event.key === " ")) return;
  event.preventDefault();
  event.stopPropagation();
  if (!way) return visit(i);
  const middle = (k) => [data.boxes[k][0] + data.boxes[k][2] / 2, data.boxes[k][1]], [x, y] = middle(i);
  let best = Infinity, next = i;
  for (let k = 0; k < size; k++) {
    const [dx, dy] = [middle(k)[0] - x, middle(k)[1] - y], along = dx * way[0] + dy * way[1], aside = Math.abs(dx * way[1]) + Math.abs(dy * way[0]);
    if (along > 1 && along + 2 * aside < best) [best, next] = [along + 2 * aside, k];
  }
  nodes[next].g.focus({ preventScroll: true });
  follow(next);
}

ui.h.oninput = () => (effect(), again());
ui.by.onchange = () => show();
ui.assign.onchange = () => (show(), effect());
const zoomTo = (size) => () => ((zoomed = true), scale(size()));
byId("in").onclick = zoomTo(() => zoom * 1.25);
byId("out").onclick = zoomTo(() => zoom / 1.25);
byId("fit").onclick = zoomTo(() => Math.min(fitted(), 1.5));
// With Shift the arrow keys scroll a picture that is larger than its view.
ui.view.onkeydown = (event) => {
  if (event.target === ui.view && zoom > fitted() * 1.01 && event.shiftKey) event.stopPropagation();
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
    html("span", { textContent: names[i], title: names[i], className: names[i].length > 14 ? "long" : "" }, row);
    const field = html("input", { type: "number", step: "any", disabled: off, ariaLabel: `${names[i]}, as a number` }, row);
    const range = html("input", { type: "range", min: start - span, max: start + span, step: "any", disabled: off, id: `leaf-${i}`, ariaLabel: names[i] }, row);
    const fresh = () => {
      field.value = +values[i].toPrecision(5);
      range.value = values[i];
    };
    const change = (source) => {
      chosen = i;
      if (source.value === "") return;
      values[i] = +source.value;
      recompute();
      (source === field ? range : field).value = source === field ? values[i] : +values[i].toPrecision(5);
      ui.reset.disabled = false;
      show();
      effect();
    };
    range.onfocus = field.onfocus = () => ((chosen = i), effect());
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
ui.reset.addEventListener("click", () => (restore(), (ui.reset.disabled = true), show(), effect()));
set(ui.about, data.words.about);
const [ahead, behind] = document.querySelectorAll("#phases i");
ahead.style.flexGrow = made.length;
behind.style.flexGrow = made.length + 1;
build();
sliders();
let wide = 0, zoomed = false;
function opened() {
  if (ui.view.clientWidth !== wide && !zoomed) {
    scale(fitted() < SMALLEST ? READABLE : Math.min(fitted(), 1.4));
    show();
  }
  wide = ui.view.clientWidth;
}

new ResizeObserver(opened).observe(ui.view);
// The address names a step and, after a comma, a leaf.
const [first, named] = decodeURIComponent(location.hash.slice(1)).split(",");
if (kinds[names.indexOf(named)] < 0) chosen = names.indexOf(named);
go(+first || 0);
effect();
// What lies below the window of the page around it is not laid out by itself.
opened();
report();
