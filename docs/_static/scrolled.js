// What is wider than the page scrolls, and whoever has no mouse scrolls what has the focus.
const wide = "article :is(pre, .highlight, .math, .math-wrapper, .cell_output, .cell_output > *, .table-wrapper)";
const reachable = () => {
  for (const part of document.querySelectorAll(wide)) {
    const scrolls = part.scrollWidth > part.clientWidth && getComputedStyle(part).overflowX !== "visible";
    if (scrolls) part.tabIndex = 0;
    else part.removeAttribute("tabindex");
  }
};
addEventListener("load", reachable);
addEventListener("resize", reachable);
