"""Plots of matplotlib follow the reader's light or dark page, as drawings do: a style is added to their SVG files.

The site's own switch reaches them too: site.css gives pictures the colour scheme of the page.
"""

from __future__ import annotations

from pathlib import Path

DARK = {  # what stands for each colour of the plots on dark paper
    "#ffffff": "#131416",
    "#333333": "#e7ebf0",
    "#000000": "#e7ebf0",
    "#d9d9d9": "#434e5a",
    "#0072b2": "#56b4e9",
    "#d55e00": "#ff9a57",
    "#009e73": "#2cc79a",
}
RULES = "".join(
    f'[style*="{what}: {light}"]{{{what}:{dark} !important}}'
    for light, dark in DARK.items()
    for what in ("fill", "stroke")
)
STYLE = f"<style>@media (prefers-color-scheme: dark){{svg{{fill:{DARK['#000000']}}}{RULES}}}</style>"


def follows(text):
    """The SVG of a plot, with the colours of dark paper where the page is dark; any other text as it is."""
    if "<dc:title>Matplotlib v" not in text or STYLE in text:
        return text
    head, end, rest = text.partition("</metadata>")
    return f"{head}{end}\n {STYLE}{rest}"


def follow(app, error):
    if error is None and app.builder.format == "html":
        for path in Path(app.outdir, "_images").glob("*.svg"):
            text = path.read_text(encoding="utf-8")
            if (changed := follows(text)) != text:
                path.write_text(changed, encoding="utf-8")


def setup(app):
    app.connect("build-finished", follow)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
