// What plays a page: buttons, a slider and keys. The page has an `end`, `go(to)`, which shows a position, `by(way)`,
// which goes on or back, and `delay()`, the milliseconds of a step while it is played.
const byId = (id) => document.getElementById(id);
const found = (ids) => Object.fromEntries(ids.split(" ").map((id) => [id, byId(id)]));
const ui = found("first back play on last at count speed said about");
const framed = parent !== window;
const calm = matchMedia("(prefers-reduced-motion: reduce)");
let at = 0, timer = 0, tallest = 0, across = 0;

function set(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// Where the page is, as its controls show it.
function shown(count, told) {
  ui.said.setAttribute("aria-live", timer ? "off" : "polite");
  ui.at.max = end;
  ui.at.value = at;
  ui.at.setAttribute("aria-valuetext", told);
  set(ui.count, count);
  ui.first.disabled = ui.back.disabled = at === 0;
  ui.on.disabled = ui.last.disabled = at === end;
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
    by(1);
    if (at === end) pause();
  }, delay());
  ui.play.setAttribute("aria-pressed", "true");
  ui.play.lastChild.textContent = "Pause";
  ui.play.querySelector("path").setAttribute("d", "M3 2h4v12H3zM9 2h4v12H9z");
  by(1);
}

const to = (where) => () => (pause(), where());
ui.first.onclick = to(() => go(0));
ui.last.onclick = to(() => go(end));
ui.back.onclick = to(() => by(-1));
ui.on.onclick = to(() => by(1));
ui.play.onclick = play;
ui.at.oninput = () => (pause(), go(+ui.at.value));
ui.speed.onchange = () => timer && (pause(), play());
document.onkeydown = (event) => {
  const moves = { ArrowRight: () => by(1), ArrowLeft: () => by(-1), Home: () => go(0), End: () => go(end) };
  if (event.target.matches("input:not(#at, [role=switch]), select") || event.ctrlKey || event.altKey || event.metaKey) return;
  if (event.key in moves) to(moves[event.key])();
  else if (event.key === " " && !event.target.matches("button, input")) play();
  else return;
  event.preventDefault();
};

// The page around a frame may make it as high as this: the highest of all steps so far, so that nothing jumps.
function report() {
  tallest = Math.max(across === innerWidth ? tallest : 0, Math.ceil(document.body.getBoundingClientRect().height));
  across = innerWidth;
  if (framed) parent.postMessage({ wengert: tallest }, "*");
}

document.body.classList.toggle("framed", framed);
document.querySelector("h1").textContent = document.title;
// A frame may get its size late.
new ResizeObserver(report).observe(document.body);
