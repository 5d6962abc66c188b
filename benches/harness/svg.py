"""Lines in panels: what the documents show of a measurement, drawn as the charts of `tricorn bench` are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from tricorn_bench.bench.report import drawing
from tricorn_bench.bench.report.charts import Chart

Point = tuple[float, float]

WIDTH, HEIGHT = 320, 200
MILLISECONDS = [(0.1, "0.1 ms"), (1, "1 ms"), (10, "10 ms"), (100, "100 ms"), (1000, "1 s"), (10_000, "10 s")]
COLOURS = ("INK", "COLOUR 1", "COLOUR 3", "COLOUR 5", "COLOUR 8", "COLOUR 2", "COLOUR 4")


class Axis(NamedTuple):
    """`ticks` are values with their texts; the first and the last are the ends of the axis."""

    label: str
    ticks: Sequence[tuple[float, str]]
    logarithmic: bool = False

    def encoded(self, field: str) -> dict[str, Any]:
        """What lies outside is put on the edge."""
        domain = [self.ticks[0][0], self.ticks[-1][0]]
        kind = "log" if self.logarithmic else "linear"
        texts = " : ".join(
            f"abs(datum.value / {value or 1} - {1 if value else 0}) < 1e-6 ? '{text}'" for value, text in self.ticks
        )
        return {
            "field": field,
            "type": "quantitative",
            "title": self.label,
            "scale": {"type": kind, "domain": domain, "clamp": True, "nice": False},
            "axis": {"values": [value for value, _ in self.ticks], "labelExpr": f"{texts} : ''", "labelOverlap": False},
        }


class Line(NamedTuple):
    """`colour` is 0 to 6, the same for the same name in every panel."""

    name: str
    colour: int
    points: Sequence[Point]
    dashed: bool = False


class Panel(NamedTuple):
    title: str
    x: Axis
    y: Axis
    lines: Sequence[Line]
    band: tuple[float, float] | None = None


def page(title: str, panels: Sequence[Panel], columns: int = 2) -> str:
    names = {line.name: COLOURS[line.colour] for panel in panels for line in panel.lines}
    colour = {
        "field": "family",
        "type": "nominal",
        "scale": {"domain": list(names), "range": list(names.values())},
        "legend": {"columns": 4, "symbolType": "stroke"},
    }
    spec = {
        "title": {"text": title, "anchor": "start", "fontSize": 15, "color": "INK"},
        "concat": [_panel(panel, colour) for panel in panels],
        "columns": columns,
        "spacing": 34,
    }
    return drawing.svg(Chart("panels", title, "", spec), drawing.WIDE, alone=True)


def _panel(panel: Panel, colour: dict[str, Any]) -> dict[str, Any]:
    x, y = panel.x.encoded("x"), panel.y.encoded("y")
    layers: list[dict[str, Any]] = []
    if panel.band:
        band = [{"x": panel.band[0], "end": panel.band[1]}]
        encoding = {"x": x, "x2": {"field": "end"}}
        layers.append({"data": {"values": band}, "mark": {"type": "rect", "opacity": 0.12}, "encoding": encoding})
    for line in panel.lines:
        values = [{"family": line.name, "x": one, "y": other} for one, other in line.points]
        dash = {"strokeDash": [5, 3]} if line.dashed else {}
        mark = {"type": "line", "strokeWidth": 1.8, "clip": True, "aria": False, **dash}
        encoding = {"x": x, "y": y, "color": colour, "order": {"value": 0}}
        layers.append({"data": {"values": values}, "mark": mark, "encoding": encoding})
    title = {"text": panel.title, "anchor": "start", "fontSize": 12, "color": "INK"}
    return {"title": title, "width": WIDTH, "height": HEIGHT, "layer": layers}
