// An editor for a cell: a plain text field, which every keyboard and screen reader knows, over a coloured copy of its
// text. The colours are those that the site has for code.

const STEP = 4; // columns of a level
const WORDS = {
  k: "and as assert async await break class continue def del elif else except finally for from global if import in is lambda nonlocal not or pass raise return try while with yield",
  kc: "None True False",
  nb: "abs all any bool callable dict enumerate Exception float hasattr id int isinstance len list map max min object print range repr reversed round set sorted str sum super tuple type ValueError TypeError zip",
};
const KIND = new Map(Object.entries(WORDS).flatMap(([kind, words]) => words.split(" ").map((word) => [word, kind])));
const TOKEN = new RegExp(
  [
    /(?<c1>#.*)/,
    /(?<s1>[rfb]{0,2}(?:"""[^]*?(?:"""|$)|'''[^]*?(?:'''|$)|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?))/,
    /(?<mi>\b\d[\d_]*(?:\.\d*)?(?:e[+-]?\d+)?)/,
    /(?<def>\b(?:def|class)\s+)(?<nf>\w+)/,
    /(?<nd>^[ \t]*@[\w.]+)/,
    /(?<word>[A-Za-z_]\w*)/,
    /(?<o>[-+*/%=<>@|&^~]+)/,
  ].map(({ source }) => source).join("|"),
  "gim",
);

function span(kind, text) {
  return Object.assign(document.createElement("span"), { className: kind, textContent: text });
}

// The text as coloured pieces.
export function coloured(text) {
  const pieces = [];
  let end = 0;
  for (const found of text.matchAll(TOKEN)) {
    pieces.push(text.slice(end, found.index));
    end = found.index + found[0].length;
    const { word, def, nf, ...others } = found.groups;
    if (def) pieces.push(span("k", def), span("nf", nf));
    else if (word) pieces.push(KIND.has(word) ? span(KIND.get(word), word) : word);
    else pieces.push(span(found[0].includes("YOUR CODE HERE") ? "lc-gap" : Object.keys(others).find((kind) => others[kind] !== undefined), found[0]));
  }
  return [...pieces, text.slice(end), "\n"]; // a last line that is empty has its height
}

export class Editor {
  // `changed` is called after each change; keys with which a cell is run are left to the page.
  constructor(label, changed) {
    this.element = Object.assign(document.createElement("div"), { className: "lc-editor highlight" });
    this.under = document.createElement("pre");
    this.under.ariaHidden = "true";
    this.field = Object.assign(document.createElement("textarea"), { spellcheck: false, autocapitalize: "off", autocomplete: "off", wrap: "off", rows: 1, ariaLabel: label });
    this.field.setAttribute("autocorrect", "off");
    this.field.setAttribute("aria-describedby", "ls-keys");
    const both = document.createElement("div");
    both.append(this.under, this.field);
    this.element.append(both);
    this.field.oninput = () => (this.paint(), changed());
    this.field.onkeydown = (event) => this.key(event);
    this.field.onblur = () => (this.leaves = false);
  }

  get text() {
    return this.field.value;
  }

  set text(text) {
    this.field.value = text;
    this.paint();
  }

  paint() {
    this.under.replaceChildren(...coloured(this.text));
  }

  // As if it had been typed, so that it can be undone.
  type(text) {
    document.execCommand("insertText", false, text);
  }

  key(event) {
    const { key, shiftKey } = event, { selectionStart: from, selectionEnd: to, value } = this.field;
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    const begin = value.lastIndexOf("\n", from - 1) + 1, before = value.slice(begin, from), indent = before.match(/^ */)[0];
    if (key === "Escape") this.leaves = true; // the next Tab goes on to the next control
    else if (key === "Tab" && !this.leaves && (shiftKey || value.slice(from, to).includes("\n"))) this.shift(begin, to, shiftKey);
    else if (key === "Tab" && !this.leaves) this.type(" ".repeat(STEP - (before.length % STEP)));
    else if (key === "Enter" && !shiftKey) this.type(`\n${this.indented(before, indent)}`);
    else if (key === "Backspace" && from === to && before && before === indent) {
      this.field.setSelectionRange(from - (before.length % STEP || STEP), from);
      document.execCommand("delete");
    } else return;
    if (key !== "Escape") event.preventDefault();
  }

  // What a line begins with after this one.
  indented(line, indent) {
    const code = line.replace(/#.*$/, "").trimEnd();
    if (code.endsWith(":")) return indent + " ".repeat(STEP);
    return /^\s*(return|pass|break|continue|raise)\b/.test(code) ? indent.slice(STEP) : indent;
  }

  // All lines of the selection, a level to the right or to the left.
  shift(begin, to, left) {
    const { value } = this.field, end = Math.max(to, begin), stop = value.indexOf("\n", end) < 0 ? value.length : value.indexOf("\n", end);
    const lines = value.slice(begin, stop).split("\n"), pad = " ".repeat(STEP);
    const moved = lines.map((line) => (left ? line.replace(new RegExp(`^ {1,${STEP}}`), "") : line && pad + line)).join("\n");
    if (moved === lines.join("\n")) return;
    this.field.setSelectionRange(begin, stop);
    this.type(moved);
    if (lines.length > 1) this.field.setSelectionRange(begin, begin + moved.length);
    else this.field.setSelectionRange(begin + moved.length, begin + moved.length);
  }
}
