// What is wider than the page scrolls, and whoever has no mouse scrolls what has the focus. (The playground has its own.)
const wide = "article :is(pre, .highlight, .math, .math-wrapper, .cell_output, .cell_output > *, .table-wrapper):not(.pg *)";
const reachable = () => {
  for (const part of document.querySelectorAll(wide)) {
    const scrolls = part.scrollWidth > part.clientWidth && getComputedStyle(part).overflowX !== "visible";
    if (scrolls) part.tabIndex = 0;
    else part.removeAttribute("tabindex");
  }
};
// A drawing is as wide as its column, but not below 60 % of its size; a click shows it in full.
const LEAST = 0.6;
const whole = () => {
  for (const drawing of document.querySelectorAll('.cell_output img[src$=".svg"]:not(.plot), article img[src*="/draw-"]:not(.paths *)')) {
    if (drawing.closest("a") || !drawing.naturalWidth) continue;
    const link = Object.assign(document.createElement("a"), { href: drawing.src, className: "whole", title: "Full size" });
    drawing.replaceWith(link);
    link.append(drawing);
    drawing.style.minWidth = `${Math.round(LEAST * drawing.naturalWidth)}px`;
  }
  reachable();
};
// The theme's parts beside the text, by name: whoever does not see them goes from one to the next.
const named = [[".sidebar-drawer", "Site"], [".toc-drawer", "Page"], [".content-icon-container", "Tools", "navigation"]];
for (const [part, name, role] of named) {
  const found = document.querySelector(part);
  found?.setAttribute("aria-label", name);
  if (role) found?.setAttribute("role", role);
}
addEventListener("load", whole);
addEventListener("resize", reachable);
