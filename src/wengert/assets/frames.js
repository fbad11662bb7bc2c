// A page of frames: each says what attributes of the drawings are, and may colour the cells of one of them.
const { frames, shades, pace } = film, end = frames.length - 1;

// With less motion the pictures follow each other slowly, in at most ten leaps.
const leaps = () => timer && calm.matches && pace > 1;
const delay = () => +ui.speed.value / (calm.matches ? 1 : pace);
const by = (way) => go(at + way * (leaps() ? Math.ceil(end / 10) : 1));

function go(to) {
  at = Math.max(0, Math.min(end, Math.round(to)));
  const { marks, cells, count, said } = frames[at];
  for (const [id, attributes] of Object.entries(marks))
    for (const [name, value] of Object.entries(attributes)) name === "text" ? set(byId(id), value) : byId(id).setAttribute(name, value);
  if (cells) paint(cells);
  set(ui.said, said);
  shown(count, count);
}

// Rows of cells from above to below, each a letter that stands for a shade.
function paint(cells) {
  const canvas = document.querySelector("canvas"), context = canvas.getContext("2d");
  const picture = context.createImageData(canvas.width, canvas.height);
  for (let i = 0; i < cells.length; i++) picture.data.set(shades[cells.charCodeAt(i) - 65], 4 * i);
  context.putImageData(picture, 0, 0);
}

// What is said takes as much room as the longest sentence, so that nothing jumps.
function reserve() {
  const longest = ui.said.cloneNode();
  longest.removeAttribute("style");
  longest.textContent = frames.reduce((most, { said }) => (said.length > most.length ? said : most), "");
  ui.said.after(longest);
  ui.said.style.minHeight = `${longest.offsetHeight}px`;
  longest.remove();
}

new ResizeObserver(reserve).observe(document.querySelector("main"));
set(ui.about, film.about);
if (film.cells) paint(film.cells);
go(+location.hash.slice(1) || 0);
