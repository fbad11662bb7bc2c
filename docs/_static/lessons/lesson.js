// A lesson that runs: each of its cells is an editor, and what comes of it appears below. The cells are those of the
// notebook that the page offers; without this program the page reads as it was written.
import { Engine, place } from "../playground/engine.js";
import { Editor } from "./editor.js";
import { keep, keepMine, keepRuntime, kept, mine, runtimeKept } from "./kept.js";

const SMALLEST = 0.6; // of its size: a drawing that would be smaller in its column scrolls
const byId = (name) => document.getElementById(`ls-${name}`);
const bar = document.getElementById("ls"), article = bar.closest("article");
const runtime = place(bar.dataset.runtime);

function made(kind, className, text = "", more = {}) {
  return Object.assign(document.createElement(kind), { className, textContent: text, ...more });
}

const button = (text, onclick, className = "") => made("button", className, text, { type: "button", onclick });
const say = (text) => (byId("status").textContent = text);

// -- a cell ---------------------------------------------------------------------------------------------------------

class Cell {
  constructor({ id, source }, number, shown) {
    Object.assign(this, { id, number, given: source.join("") });
    this.isCheck = /^course\.check\(/m.test(this.given);
    this.ran = false; // in the Python that there is now
    this.editor = new Editor(`Code of cell ${number}`, () => this.changed());
    this.main = button(this.name, () => (running === this ? stop() : run(this)), "lc-run");
    this.main.ariaLabel = `${this.name} cell ${number}`;
    this.reset = button("Reset", () => this.restore());
    this.reset.ariaLabel = `Reset cell ${number}`;
    this.note = made("p", "lc-note", "", { role: "status" });
    this.more = button("Run the cells above, then this one", () => this.runUpTo());
    this.out = made("div", "lc-out", "", { role: "group", ariaLabel: `Output of cell ${number}` });
    this.element = made("div", "lc", "", { role: "group", ariaLabel: `Cell ${number}` });
    this.bar = made("div", "lc-bar");
    this.bar.append(this.main, this.reset, this.note, this.more);
    this.element.append(this.bar, this.out);
    this.lay(shown);
    this.editor.field.addEventListener("keydown", (event) => this.key(event));
    this.more.hidden = this.out.hidden = true;
    this.text = this.given;
  }

  get name() {
    return this.isCheck ? "Check" : "Run";
  }

  get text() {
    return this.editor.text;
  }

  set text(text) {
    this.editor.text = text;
    this.reset.hidden = text === this.given;
  }

  // Into the page: in the place of a gap, of what is run, or of what is folded.
  lay(shown) {
    const gap = shown.previousElementSibling, folded = shown.querySelector("details.above-input"), input = shown.querySelector(".cell_input");
    this.was = [...shown.querySelectorAll(".cell_output")];
    if (gap?.matches(".highlight-python")) {
      gap.replaceWith(this.element);
      this.element.prepend(this.editor.element);
    } else {
      input.replaceWith(this.editor.element);
      if (folded) folded.after(this.element);
      else {
        this.editor.element.replaceWith(this.element);
        this.element.prepend(this.editor.element);
      }
    }
    for (const output of this.was) {
      output.before(made("p", "ls-was", "With our solutions:"));
      if (this.isCheck) this.forget();
    }
  }

  // What the page shows without being run.
  forget() {
    for (const output of this.was) {
      output.previousElementSibling?.matches(".ls-was") && output.previousElementSibling.remove();
      output.remove();
    }
    this.was = [];
  }

  changed() {
    this.reset.hidden = this.text === this.given;
    later();
  }

  restore() {
    this.text = this.given;
    this.tell("as it was at first");
    save();
  }

  key(event) {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey || event.shiftKey)) return;
    event.preventDefault();
    run(this);
    if (event.shiftKey) cells[this.number]?.editor.field.focus();
  }

  // In a tone: "" or "wrong", and of a verdict "right" or "later" too.
  tell(text, tone = "") {
    this.note.textContent = text;
    this.note.className = `lc-note ${tone}`;
  }

  runUpTo() {
    run(...cells.slice(0, this.number - 1).filter((cell) => !cell.ran), this);
  }

  // How many letters of the output fit in a line.
  get columns() {
    const probe = this.out.appendChild(made("pre", "", "0".repeat(100)));
    const { paddingLeft, paddingRight } = getComputedStyle(probe), room = probe.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight);
    const wide = document.createRange();
    wide.selectNodeContents(probe);
    const columns = Math.floor((100 * room) / wide.getBoundingClientRect().width);
    probe.remove();
    return Math.max(columns || 80, 30);
  }

  begin() {
    this.forget();
    this.out.hidden = false;
    this.out.replaceChildren();
    this.more.hidden = true;
    this.element.classList.add("running");
    this.main.textContent = "Stop";
    this.main.ariaLabel = `Stop cell ${this.number}`;
    this.tell(ready ? "runs" : "waits for Python");
    [this.said, this.tone] = ["has run", ""];
  }

  // What comes of it, one thing after the other.
  show({ kind, text, ...what }) {
    if (kind === "text") {
      const last = this.out.lastElementChild, tone = what.error ? "error" : "printed";
      const to = last?.matches(`pre.${tone}`) ? last : this.out.appendChild(this.scrolled(tone));
      to.append(text);
      if (what.error) this.said = text.trimEnd().split("\n").at(-1);
    } else if (kind === "value") this.out.append(this.scrolled("value", text));
    else if (kind === "svg") {
      const picture = made("img", what.paper ? "plot" : "", "", { alt: what.alt, src: `data:image/svg+xml,${encodeURIComponent(what.svg)}` });
      const figure = made("figure", "", "", { tabIndex: 0, role: "group", ariaLabel: "A drawing" });
      picture.onload = () => (picture.style.minWidth = `${SMALLEST * picture.naturalWidth}px`);
      figure.append(picture);
      this.out.append(figure);
    } else if (kind === "page") {
      const title = new DOMParser().parseFromString(what.html, "text/html").title;
      const frame = made("iframe", "", "", { title, height: 720, srcdoc: what.html });
      frame.sandbox.add("allow-scripts");
      this.out.append(frame);
    } else if (kind === "verdict") {
      const { right, of, wrong } = what, done = right === of;
      this.tone = done ? "right" : wrong ? "wrong" : "later";
      this.said = `${{ right: "✓ Right", wrong: "✗ Something is wrong", later: "… Not yet" }[this.tone]}: ${right} of ${of}${done ? "" : " right"}`;
      this.out.append(this.scrolled("value", text));
      if (what.step === lesson && this.isCheck) judged(done);
    }
  }

  // What is wide scrolls, by keys too.
  scrolled(tone, text = "") {
    return made("pre", tone, text, { tabIndex: 0, role: "group", ariaLabel: { error: "Error", printed: "Printed", value: "Result" }[tone] });
  }

  // `how` it ended: "" where all went well.
  end(how) {
    this.element.classList.remove("running");
    this.main.textContent = this.name;
    this.main.ariaLabel = `${this.name} cell ${this.number}`;
    this.ran = how === "";
    this.more.hidden = this.ran || cells.slice(0, this.number - 1).every((cell) => cell.ran);
    this.out.hidden = !this.out.childElementCount;
    if (how === "") this.tell(this.said, this.tone);
    else this.tell(how === "failed" ? this.said : how, "wrong");
  }
}

// -- running --------------------------------------------------------------------------------------------------------

let engine = null, ready = false, running = null, waiting = [], timer = 0;

// Python is brought when a reader first means to write or to run; where it has been before, when the page opens.
function begin(unasked = false) {
  if (engine) return;
  ready = false;
  const failed = (error) => engine === begun && missing(error, unasked && !running);
  const begun = (engine = new Engine(new URL("worker.js", import.meta.url), runtime, (what) => engine === begun && heard(what), failed));
  if (!waiting.length && !unasked) say("Python is being loaded.");
  begun.ready.then(() => engine === begun && arrived(), failed);
}

function arrived() {
  ready = true;
  keepRuntime(runtime.href);
  say("");
  running?.tell("runs");
}

function missing(error, quietly) {
  if (!quietly) say(`Python cannot be loaded: ${error.message}. It needs a browser from 2024 or later, and comes from ${runtime.host}.`);
  finish("Python is not here");
  engine.end();
  engine = null; // the next run tries again
}

function heard(what) {
  if (what.kind === "begins") {
    clearTimeout(timer);
    timer = setTimeout(() => stop(`stopped after ${bar.dataset.limit} seconds`), 1000 * bar.dataset.limit);
    running.out.replaceChildren();
    running.tell("runs");
  } else if (what.kind === "mine") {
    if (!keepMine(what.text)) say(UNKEPT);
    offer();
  } else if (what.kind === "loading") running.tell(what.text);
  else running.show(what);
}

function run(...wanted) {
  begin();
  waiting.push(...wanted.filter((cell) => cell !== running && !waiting.includes(cell)));
  next();
}

async function next() {
  byId("stop").disabled = !running && !waiting.length;
  if (running || !waiting.length) return;
  running = waiting.shift();
  byId("stop").disabled = false;
  save();
  running.begin();
  const asked = engine, { number, text, columns } = running;
  try {
    const how = await asked.ask("run", number, text, columns, mine());
    if (asked === engine) finish(how);
  } catch (error) {
    if (asked === engine && ready) stop(`Python has ended, at a graph that is too deep for a browser or for want of memory (${error.message})`);
  }
}

// The running cell has ended; after one that failed no other is run.
function finish(how) {
  clearTimeout(timer);
  const cell = running;
  running = null;
  if (how) waiting = [];
  cell?.end(how);
  next();
}

// Whatever the cell is at: its Python ends, and another one begins.
function stop(why = "stopped") {
  if (!running) return;
  engine.end();
  engine = null;
  for (const cell of cells) cell.ran = false;
  finish(`${why}. Python begins anew, without what the other cells had made`);
  begin();
}

// -- what is kept ---------------------------------------------------------------------------------------------------

const UNKEPT = "This browser keeps nothing for this page: save your work as files.";
let notebook, lesson, cells = [], state, timed = 0;

function save() {
  clearTimeout(timed);
  state.cells = Object.fromEntries(cells.filter((cell) => cell.text !== cell.given).map((cell) => [cell.id, cell.text]));
  if (!keep(lesson, state)) say(UNKEPT);
}

function later() {
  clearTimeout(timed);
  timed = setTimeout(save, 300);
}

function judged(done) {
  if (done === state.done) return;
  state.done ||= done;
  save();
}

function written() {
  const texts = new Map(cells.map((cell) => [cell.id, cell.text]));
  const lines = (text) => text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
  return { ...notebook, cells: notebook.cells.map((cell) => (texts.has(cell.id) ? { ...cell, source: lines(texts.get(cell.id)) } : cell)) };
}

function download(name, text, type) {
  const link = made("a", "", "", { download: name, href: URL.createObjectURL(new Blob([text], { type })) });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function offer() {
  for (const name of ["mine", "forget"]) byId(name).disabled = !mine();
}

// The cells of a notebook that was saved here, or anywhere else: Jupyter keeps what they are called. Or `mine.py`.
async function bring(file) {
  let found;
  if (file.name.endsWith(".py")) {
    const text = await file.text();
    if (!/^Lessons: [\d ]*$/m.test(text)) return say(`${file.name} is no engine that the check of a lesson has kept: it says at its top which lessons it has.`);
    keepMine(text);
    offer();
    return say(`Your engine was brought back from ${file.name}.`);
  }
  try {
    found = JSON.parse(await file.text()).cells.filter((cell) => cell.cell_type === "code");
  } catch {
    return say(`${file.name} is no notebook: a file is expected that was saved as one.`);
  }
  const texts = new Map(found.map((cell) => [cell.id, [cell.source].flat().join("")]));
  const known = cells.filter((cell) => texts.has(cell.id));
  if (!known.length) return say(`${file.name} is no notebook of this lesson: none of its cells is one of this page's.`);
  for (const cell of known) cell.text = texts.get(cell.id);
  save();
  return say(`${known.length} cells were brought back from ${file.name}.`);
}

// -- the beginning --------------------------------------------------------------------------------------------------

const link = article.querySelector("a.download[href$='.ipynb']");
notebook = await (await fetch(link.href)).json();
const code = notebook.cells.filter((cell) => cell.cell_type === "code"), shown = [...article.querySelectorAll("div.cell")];
if (code.length !== shown.length) throw new Error(`the page has ${shown.length} cells, and its notebook ${code.length}`);
lesson = +code[0].id.split("-")[0];
state = kept(lesson);
cells = code.map((cell, i) => new Cell(cell, i + 1, shown[i]));
for (const cell of cells) if (cell.id in state.cells) cell.text = state.cells[cell.id];

byId("all").onclick = () => run(...cells);
byId("stop").onclick = () => stop();
byId("save").onclick = () => download(link.href.split("/").at(-1), `${JSON.stringify(written(), null, 1)}\n`, "application/x-ipynb+json");
byId("mine").onclick = () => download("mine.py", mine(), "text/x-python");
byId("forget").onclick = () => {
  if (!confirm("The engine that the checks have kept is forgotten, and the lessons' cells are not: run them and their checks again, from lesson 1 on.")) return;
  keepMine("");
  offer();
};
byId("bring").onclick = () => byId("file").click();
byId("file").onchange = async ({ target }) => {
  if (target.files.length) await bring(target.files[0]);
  target.value = "";
};
byId("reset").onclick = () => {
  if (confirm("All cells of this lesson become what they were at first. What you have written in them is lost.")) for (const cell of cells) cell.restore();
};
article.addEventListener("focusin", ({ target }) => target.matches(".lc textarea") && begin());
addEventListener("pagehide", save);
// A page that plays says how high it is.
addEventListener("message", ({ data, source }) => {
  for (const frame of article.querySelectorAll(".lc-out iframe"))
    if (source === frame.contentWindow && data?.wengert > 0) frame.style.height = `${data.wengert + 2}px`;
});
offer();
bar.hidden = false;
if (runtimeKept() === runtime.href && !document.hidden) begin(true);
