// The pictures of the playground: the plane with the boundary, the loss, the network. Each is told what to draw.

export const REACH = 1.85; // the plane goes from -REACH to REACH, both ways
const GRID = 72; // places in a row at which the network is asked
const EVERY = 3; // each third of them is in the small picture of a neuron
const SMALL = GRID / EVERY;
const SCALE = 0.85; // how strong the colour of 1 is, and of -1

// With four figures.
export function number(x) {
  const size = Math.abs(x), short = size && (size < 1e-4 || size >= 1e6) ? x.toExponential(2) : String(+x.toPrecision(4));
  return short.toLowerCase().replaceAll("-", "−");
}

// The colours that the style has at the moment, as [red, green, blue].
export function palette(root) {
  const probe = root.appendChild(document.createElement("i"));
  const read = (name) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color.match(/[\d.]+/g).slice(0, 3).map(Number);
  };
  const found = Object.fromEntries(["paper", "ink", "blue", "orange"].map((name) => [name, read(name)]));
  probe.remove();
  return found;
}

const css = ([r, g, b], opacity = 1) => `rgb(${r} ${g} ${b} / ${opacity})`;

export function svg(name, attributes, parent, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const key in attributes) made.setAttribute(key, attributes[key]);
  if (text !== undefined) made.textContent = text;
  parent?.append(made);
  return made;
}

// A canvas whose points are those of the screen, and its pen, in CSS pixels.
function pen(canvas, width, height) {
  const fine = devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * fine) || canvas.height !== Math.round(height * fine)) {
    canvas.width = Math.round(width * fine);
    canvas.height = Math.round(height * fine);
  }
  const made = canvas.getContext("2d");
  made.setTransform(fine, 0, 0, fine, 0, 0);
  made.clearRect(0, 0, width, height);
  return made;
}

// The colour of a number from -1 to 1: orange below 0, blue above, the paler the nearer to 0.
function shade(x, colours, strength) {
  const paint = x < 0 ? colours.orange : colours.blue, share = strength * Math.min(1, Math.abs(x) || 0);
  return colours.paper.map((paper, c) => paper + share * (paint[c] - paper));
}

// A square picture of such numbers.
function washed(size, numbers, colours, strength) {
  const picture = new ImageData(size, size);
  numbers.forEach((x, k) => picture.data.set([...shade(x, colours, strength), 255], 4 * k));
  const canvas = new OffscreenCanvas(size, size);
  canvas.getContext("2d").putImageData(picture, 0, 0);
  return canvas;
}

// What the network gives all over the plane, row by row from above: of the output each place, of a neuron each third;
// and of the one that is shown large, each place, too.
export class Field {
  fill(forward, numbers, count, enlarged) {
    const out = new Float64Array(count);
    this.outputs = new Float64Array(GRID * GRID);
    this.large = new Float64Array(GRID * GRID);
    this.small = Array.from({ length: count }, () => new Float64Array(SMALL * SMALL));
    for (let row = 0, k = 0, n = 0; row < GRID; row++)
      for (let column = 0; column < GRID; column++, k++) {
        forward(numbers, Field.at(column), -Field.at(row), out);
        this.outputs[k] = out[count - 1];
        this.large[k] = out[enlarged];
        if (row % EVERY !== 1 || column % EVERY !== 1) continue;
        for (let i = 0; i < count; i++) this.small[i][n] = out[i];
        n++;
      }
  }

  static at = (k) => REACH * ((2 * k + 1) / GRID - 1);

  // The pieces of the line on which the output is this number, in columns and rows.
  line(level) {
    const lines = [], z = this.outputs;
    for (let row = 0; row + 1 < GRID; row++)
      for (let column = 0; column + 1 < GRID; column++) {
        const corners = [[0, 0], [1, 0], [1, 1], [0, 1]].map(([i, j]) => [column + i, row + j, z[(row + j) * GRID + column + i] - level]);
        const ends = [];
        corners.forEach(([x, y, a], side) => {
          const [u, v, b] = corners[(side + 1) % 4];
          if (a < 0 !== b < 0) ends.push([x + ((u - x) * a) / (a - b), y + ((v - y) * a) / (a - b)]);
        });
        for (let i = 0; i + 1 < ends.length; i += 2) lines.push([ends[i], ends[i + 1]]);
      }
    return lines;
  }
}

// -- the plane ------------------------------------------------------------------------------------------------------

export class Plane {
  constructor(canvas) {
    this.canvas = canvas;
  }

  // From the plane to the picture, and back from where the pointer is.
  place = ([x, y]) => [((x / REACH + 1) * this.side) / 2, ((1 - y / REACH) * this.side) / 2];

  under({ clientX, clientY }) {
    const { left, top, width } = this.canvas.getBoundingClientRect();
    return [REACH * ((2 * (clientX - left)) / width - 1), REACH * (1 - (2 * (clientY - top)) / width)];
  }

  draw(field, X, Y, chosen, cursor, colours, [others, targets], regression) {
    this.side = this.canvas.clientWidth;
    const to = pen(this.canvas, this.side, this.side);
    const cell = this.side / GRID;
    to.imageSmoothingQuality = "high";
    const shown = regression ? field.outputs : Array.from(field.outputs, (z) => Math.tanh(z / 2)); // the probabilities' difference
    to.drawImage(washed(GRID, shown, colours, regression ? SCALE : 0.55), 0, 0, this.side, this.side);
    to.strokeStyle = css(colours.ink, 0.8);
    to.lineCap = "round";
    for (const level of regression ? [-0.5, 0, 0.5] : [0]) {
      to.lineWidth = level ? 0.7 : 1.6;
      to.beginPath();
      for (const [[x, y], [u, v]] of field.line(level)) {
        to.moveTo((x + 0.5) * cell, (y + 0.5) * cell);
        to.lineTo((u + 0.5) * cell, (v + 0.5) * cell);
      }
      to.stroke();
    }
    this.axes(to, colours);
    const dot = regression ? this.spot : this.dot;
    others.forEach((point, i) => dot(to, this.place(point), targets[i], colours, true));
    X.forEach((point, i) => dot(to, this.place(point), Y[i], colours));
    if (X.length) this.ring(to, this.place(X[chosen]), colours);
    if (!cursor) return;
    const [x, y] = this.place(cursor);
    to.strokeStyle = css(colours.ink);
    to.strokeRect(x - 7, y - 7, 14, 14);
  }

  // Where -1, 0 and 1 are, along the lower and the left edge.
  axes(to, colours) {
    to.strokeStyle = to.fillStyle = css(colours.ink, 0.75);
    to.lineWidth = 1;
    to.font = "12px system-ui, sans-serif";
    for (const x of [-1, 0, 1]) {
      const [across, up] = this.place([x, x]), said = String(x).replace("-", "−");
      to.beginPath();
      to.moveTo(across, this.side);
      to.lineTo(across, this.side - 5);
      to.moveTo(0, up);
      to.lineTo(5, up);
      to.stroke();
      to.textAlign = "center";
      to.fillText(said, across, this.side - 8);
      to.textAlign = "left";
      to.fillText(said, 8, up + 4);
    }
    to.textAlign = "right";
    to.fillText("x1", this.side - 8, this.side - 8);
    to.textAlign = "left";
    to.fillText("x2", 8, 16);
  }

  // Blue examples are round and orange ones square, so that no one has to tell colours apart.
  // Those that are held out are hollow.
  dot(to, [x, y], label, colours, hollow = false) {
    const paint = css(label ? colours.blue : colours.orange);
    to.beginPath();
    if (label) to.arc(x, y, 5, 0, 7);
    else to.rect(x - 4.5, y - 4.5, 9, 9);
    to.fillStyle = hollow ? css(colours.paper) : paint;
    to.strokeStyle = hollow ? paint : css(colours.paper);
    to.lineWidth = 1.5;
    to.fill();
    to.stroke();
  }

  // An example of regression has the colour that the plane has where the network is right; one that is held out is small.
  spot(to, [x, y], target, colours, small = false) {
    to.beginPath();
    to.arc(x, y, small ? 3 : 5, 0, 7);
    to.fillStyle = css(shade(target, colours, SCALE));
    to.strokeStyle = css(colours.ink, 0.7);
    to.lineWidth = 1;
    to.fill();
    to.stroke();
  }

  ring(to, [x, y], colours) {
    to.beginPath();
    to.arc(x, y, 10, 0, 7);
    to.strokeStyle = css(colours.ink);
    to.lineWidth = 2.5;
    to.stroke();
  }
}

// -- the loss -------------------------------------------------------------------------------------------------------

const POINTS = 300; // of the curve, at most

export function drawLoss(element, losses, tested) {
  const wide = element.clientWidth, tall = element.clientHeight, left = 50, right = 10, top = 10, below = 22;
  const heights = losses.map((loss) => Math.log10(Math.max(loss, 1e-12)));
  const others = tested.map(([step, loss]) => [step - 1, Math.log10(Math.max(loss, 1e-12))]).filter(([, height]) => isFinite(height));
  const finite = [...heights.filter(isFinite), ...others.map(([, height]) => height)];
  const low = Math.floor(finite.reduce((a, b) => Math.min(a, b), -0.01)), high = Math.ceil(finite.reduce((a, b) => Math.max(a, b), 0));
  const up = (height) => top + ((high - height) / (high - low)) * (tall - top - below);
  const across = (step) => left + (step / Math.max(losses.length - 1, 1)) * (wide - left - right);
  element.setAttribute("viewBox", `0 0 ${wide} ${tall}`);
  element.replaceChildren();
  const apart = Math.ceil((high - low) / 4);
  for (let power = high; power >= low; power -= apart) {
    svg("path", { class: "axis", d: `M${left},${up(power)}H${wide - right}` }, element);
    svg("text", { x: left - 7, y: up(power) + 4, "text-anchor": "end" }, element, power > -4 && power < 5 ? String(+`1e${power}`) : `1e${power}`);
  }
  svg("text", { x: left, y: tall - 5 }, element, "step 1");
  if (losses.length < 2) return;
  svg("text", { x: wide - right, y: tall - 5, "text-anchor": "end" }, element, losses.length);
  const every = Math.ceil(losses.length / POINTS);
  let d = "", move = "M";
  heights.forEach((height, step) => {
    if (step % every && step < heights.length - 1) return;
    if (isFinite(height)) d += `${move}${across(step).toFixed(1)},${up(height).toFixed(1)}`;
    move = isFinite(height) ? "L" : "M";
  });
  const some = others.filter((_, i) => i % Math.ceil(others.length / POINTS) === 0 || i === others.length - 1);
  if (some.length > 1) svg("path", { class: "tested", d: `M${some.map(([step, height]) => `${across(step).toFixed(1)},${up(height).toFixed(1)}`).join("L")}` }, element);
  svg("path", { class: "curve", d }, element);
}

// -- the network ----------------------------------------------------------------------------------------------------

const NEAR = 14; // pixels between a click and the weight that is meant, at most
const WIDEST = 7;

// Its lines, which are weights, and its squares, which are neurons and stand for their biases. Each is called by the
// name of its parameter.
export class Network {
  constructor(box, told, asked) {
    [this.lines, this.squares] = box.children;
    this.box = box;
    this.told = told; // called when another weight is looked at
    this.asked = asked; // called with a name that is to be explained
    this.items = [];
    this.lines.onclick = (event) => this.meant(event) && this.asked(this.meant(event).name);
    this.lines.onpointermove = (event) => this.look(this.meant(event));
    this.lines.onpointerleave = () => this.look(null);
    this.lines.onkeydown = (event) => this.key(event);
  }

  // Anew, or for a box of another width.
  build(sizes = this.sizes, names = this.names, inputs = this.inputs) {
    Object.assign(this, { sizes, names, inputs });
    const columns = [inputs.length, ...sizes, 1], most = Math.max(5, ...columns);
    const wide = this.box.clientWidth, side = wide / columns.length < 62 ? 26 : most > 6 ? 34 : 42, row = side + 16;
    const tall = most * row + 8;
    Object.assign(this, { wide, tall, side, items: [], neurons: [] });
    this.box.style.height = `${tall}px`;
    this.lines.setAttribute("viewBox", `0 0 ${wide} ${tall}`);
    this.lines.replaceChildren();
    const x = (c) => side / 2 + 4 + (c * (wide - side - 8)) / (columns.length - 1);
    const y = (c, i) => tall / 2 - 6 + (i - (columns[c] - 1) / 2) * Math.min(row * 1.5, (tall - 8) / columns[c]);
    const edges = svg("g", { class: "edges" }, this.lines), boxes = svg("g", {}, this.lines);
    columns.forEach((count, c) => {
      for (let i = 0; i < count; i++) {
        const [u, v] = [x(c), y(c, i)], start = `layers.${c - 1}.neurons.${i}`;
        if (c > 0)
          for (let j = 0; j < columns[c - 1]; j++) {
            const [a, b] = [x(c - 1) + side / 2, y(c - 1, j)], middle = (a + u - side / 2) / 2;
            const d = `M${a},${b}C${middle},${b} ${middle},${v} ${u - side / 2},${v}`;
            this.add(svg("path", { class: "edge", d }, edges), `${start}.w.${j}`, c, names);
          }
        const square = svg("rect", { class: "neuron", x: u - side / 2, y: v - side / 2, width: side, height: side, rx: 7 }, boxes);
        const mark = svg("text", { class: "mark", x: u, y: v + side / 2 + 12 }, boxes, c ? "" : inputs[i]);
        if (c > 0) this.add(square, `${start}.b`, c, names);
        this.neurons.push({ square, mark, x: u, y: v, isInput: c === 0 });
      }
    });
    this.stop(this.items[0]);
  }

  add(element, name, column, names) {
    for (const [key, value] of Object.entries({ role: "button", tabindex: -1, "aria-label": name })) element.setAttribute(key, value);
    const item = { element, name, column, place: names.indexOf(name), isBias: name.endsWith(".b") };
    if (!item.isBias) {
      const long = element.getTotalLength();
      item.points = Array.from({ length: 25 }, (_, k) => element.getPointAtLength((long * k) / 24));
    }
    element.onfocus = () => (this.stop(item), this.look(item));
    element.onblur = () => this.look(null);
    this.items.push(item);
  }

  // What a pointer means: the neuron that it is on, else the line that is the nearest.
  meant({ clientX, clientY }) {
    const { left, top } = this.lines.getBoundingClientRect(), [x, y] = [clientX - left, clientY - top];
    let best = NEAR, found = null;
    for (const item of this.items) {
      if (item.isBias) {
        const [u, v] = ["x", "y"].map((key) => +item.element.getAttribute(key));
        if (x >= u && y >= v && x <= u + this.side && y <= v + this.side) return item;
        continue;
      }
      for (const point of item.points) {
        const far = Math.hypot(point.x - x, point.y - y);
        if (far < best) [best, found] = [far, item];
      }
    }
    return found;
  }

  look(item) {
    this.seen?.element.classList.remove("seen");
    item?.element.classList.add("seen");
    this.seen = item;
    this.told();
  }

  // One of them can be reached by Tab, and from it, by the arrow keys, the others of the layer and the other layers.
  stop(item) {
    for (const { element } of this.items) element.setAttribute("tabindex", -1);
    item.element.setAttribute("tabindex", 0);
  }

  key(event) {
    const item = this.items.find(({ element }) => element === event.target);
    const [along, layers] = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] }[event.key] ?? [0, 0];
    if (!item || event.ctrlKey || event.altKey || event.metaKey || !(along || layers || event.key === "Enter" || event.key === " ")) return;
    event.preventDefault();
    if (!along && !layers) return this.asked(item.name);
    const of = (column) => this.items.filter((other) => other.column === column);
    const own = of(item.column), place = own.indexOf(item), others = layers ? of(item.column + layers) : own;
    const next = others[layers ? Math.round((place / own.length) * others.length) : place + along];
    next?.element.focus({ preventScroll: true });
  }

  // `strengths` are the weights or the gradients; `marks` says of each neuron what is the matter with it.
  draw(strengths, field, marks, chosen, colours) {
    const largest = Math.max(...this.items.filter(({ isBias }) => !isBias).map(({ place }) => Math.abs(strengths[place])));
    const wide = (x) => 0.5 + (WIDEST * Math.abs(x)) / largest || 0.5; // also where all are 0, or one is no number
    for (const { element, name, place, isBias } of this.items) {
      element.classList.toggle("chosen", name === chosen);
      if (isBias) continue;
      element.style.strokeWidth = wide(strengths[place]);
      element.classList.toggle("negative", strengths[place] < 0);
      element.classList.toggle("still", strengths[place] === 0);
    }
    const to = pen(this.squares, this.wide, this.tall), inner = this.side - 4;
    this.neurons.forEach(({ square, mark, x, y, isInput }, k) => {
      const numbers = field.small[k], most = extent(numbers);
      to.save();
      to.beginPath();
      to.roundRect(x - inner / 2, y - inner / 2, inner, inner, 5);
      to.clip();
      to.drawImage(washed(SMALL, numbers.map((z) => z / most), colours, SCALE), x - inner / 2, y - inner / 2, inner, inner);
      to.restore();
      if (isInput) return;
      square.classList.toggle("flat", !!marks[k - this.inputs.length]);
      mark.textContent = marks[k - this.inputs.length] ?? "";
    });
    return largest;
  }

  // Which neuron is looked at; -1 if none is.
  enlarged = () => this.neurons.findIndex(({ square }) => square === this.seen?.element);

  // Its picture, large.
  enlarge(canvas, field, colours) {
    const side = 132, most = extent(field.large);
    canvas.classList.toggle("none", this.enlarged() < 0);
    const to = pen(canvas, side, side);
    to.imageSmoothingQuality = "high";
    to.drawImage(washed(GRID, field.large.map((z) => z / most), colours, SCALE), 0, 0, side, side);
  }
}

const extent = (numbers) => Math.max(1, numbers.reduce((a, b) => Math.max(a, Math.abs(b)), 0));
