"""Draws charts by vl-convert: Vega's own renderer in one wheel, without a browser and without a network.

A chart becomes one SVG for light and dark pages. Vega is given colours that stand for names (`#c00001`), and they are
replaced by CSS variables; a style of the file, or of the page around it, gives them values.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from tricorn_bench.bench.errors import BenchError
from tricorn_bench.bench.report.charts import Chart, Spec

if TYPE_CHECKING:
    from types import ModuleType

WIDE, NARROW = 500, 300
"""Pixels of the plot: the half of a wide page, and a telephone."""

HALF_A_ROW = 30
"""Characters of a legend."""

MISSING = (
    "Charts and the HTML page need vl-convert-python, which is not installed: pip install 'tricorn[bench]'. "
    "The table, Markdown and JSON are complete without it."
)

LIGHT = {
    "paper": "#ffffff",
    "ink": "#1f2328",
    "muted": "#59636e",
    "grid": "#e4e8ec",
    "axis": "#aab2bb",
    "c1": "#0b6bcb",
    "c2": "#d9730d",
    "c3": "#16825d",
    "c4": "#b4368f",
    "c5": "#6d48d7",
    "c6": "#0e8fa8",
    "c7": "#8a6d00",
    "c8": "#c9302c",
    "c9": "#5c6773",
    "c10": "#3c8f1f",
    "s1": "#33557f",
    "s2": "#7fa3d1",
    "s3": "#bfd2ec",
}
DARK = {
    "paper": "#0d1117",
    "ink": "#e6edf3",
    "muted": "#9aa4af",
    "grid": "#232a33",
    "axis": "#4b5561",
    "c1": "#58a6ff",
    "c2": "#f0954a",
    "c3": "#3fc48e",
    "c4": "#ef7fcf",
    "c5": "#a68bff",
    "c6": "#45c8de",
    "c7": "#d6b53a",
    "c8": "#ff7a72",
    "c9": "#9aa4af",
    "c10": "#7fd15b",
    "s1": "#9cc0f2",
    "s2": "#5c86bd",
    "s3": "#34506f",
}
STAND_INS = {name: f"#c0{place:04x}" for place, name in enumerate(LIGHT, 1)}


def available() -> bool:
    try:
        _vl_convert()
    except BenchError:
        return False
    return True


def svg(chart: Chart, width: int, *, alone: bool) -> str:
    """`alone`: with the style that gives the colours their values; else the page has it."""
    drawn: str = _vl_convert().vegalite_to_svg(json.dumps(_styled(chart, width, STAND_INS)))
    drawn = _with_tooltips(_rounded(drawn))
    for name, colour in STAND_INS.items():
        drawn = drawn.replace(colour, f"var(--{name})")
    if alone:
        drawn = drawn.replace(">", f"><style>{style('svg')}</style>", 1)
    return drawn


def png(chart: Chart, width: int = WIDE) -> bytes:
    drawn: bytes = _vl_convert().vegalite_to_png(json.dumps(_styled(chart, width, LIGHT)), scale=2)
    return drawn


def style(selector: str) -> str:
    """The values of the colours, by what the reader's system prefers."""
    light, dark = (";".join(f"--{name}:{value}" for name, value in colours.items()) for colours in (LIGHT, DARK))
    return f"{selector}{{{light}}}@media(prefers-color-scheme:dark){{{selector}{{{dark}}}}}"


def _styled(chart: Chart, width: int, colours: dict[str, str]) -> Spec:
    spec = _with_colours(chart.spec, colours)
    columns = 1 if width < WIDE or _longest_name(chart.spec) > HALF_A_ROW else 2
    categories = [colours[name] for name in colours if name.startswith("c")]
    axis = {
        "labelColor": colours["muted"],
        "titleColor": colours["muted"],
        "gridColor": colours["grid"],
        "domainColor": colours["axis"],
        "tickColor": colours["axis"],
        "labelFontSize": 11,
        "titleFontSize": 11,
        "titleFontWeight": "normal",
        "titlePadding": 8,
    }
    legend = {
        "orient": "top",
        "labelColor": colours["ink"],
        "titleColor": colours["muted"],
        "labelFontSize": 11,
        "labelLimit": 0,
        "columns": columns,
        "title": None,
        "symbolStrokeWidth": 2,
        "offset": 10,
        # Browsers' fonts are wider than the one that Vega measures with.
        "columnPadding": 40,
    }
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        **({} if "concat" in chart.spec else {"width": width, "autosize": {"type": "pad"}}),
        "padding": 6,
        "background": colours["paper"],
        **spec,
        "config": {
            "font": "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif",
            "view": {"stroke": None},
            "axis": axis,
            "legend": legend,
            "range": {"category": categories},
            "text": {"color": colours["ink"]},
        },
    }


def _longest_name(spec: Spec) -> int:
    rows = spec.get("data", {"values": ()})["values"]
    return max((len(row.get("family") or row["configuration"]) for row in rows), default=0)


def _with_colours(part: Any, colours: dict[str, str]) -> Any:
    """`INK` in a chart is the colour of text, `SHADE 1` the first shade, `COLOUR 1` the first category."""
    match part:
        case dict():
            return {key: _with_colours(one, colours) for key, one in part.items()}
        case list():
            return [_with_colours(one, colours) for one in part]
        case "INK":
            return colours["ink"]
        case str() if part.startswith("SHADE "):
            return colours[f"s{part[6:]}"]
        case str() if part.startswith("COLOUR "):
            return colours[f"c{part[7:]}"]
    return part


def _rounded(drawn: str) -> str:
    """Paths to a hundredth of a pixel: half of the file is digits beyond that."""
    return re.sub(r' d="[^"]*"', lambda path: re.sub(r"(\.\d\d)\d+", r"\1", path.group()), drawn)


def _with_tooltips(drawn: str) -> str:
    """Turns the labels that Vega writes for screen readers into `<title>`, which browsers show as tooltips."""
    return re.sub(
        r'<path aria-label="([^"]*)"([^>]*)(?:/>|></path>)', r'<path aria-label="\1"\2><title>\1</title></path>', drawn
    )


def _vl_convert() -> ModuleType:
    try:
        import vl_convert
    except ImportError:
        raise BenchError(MISSING) from None
    module: ModuleType = vl_convert
    return module
