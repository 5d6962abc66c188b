"""Lines in panels as SVG: what the documents show of a measurement. Readable on light and dark pages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

Point = tuple[float, float]

WIDTH, HEIGHT = 400, 270
LEFT, RIGHT, TOP, BOTTOM = 70, 20, 30, 44
TITLE, LEGEND_ROW, LEGEND_COLUMN = 34, 20, 180

# The background is painted too: a page may be dark while the browser asks for light, and the text must not drown.
STYLE = """
.paper { fill: #ffffff } text { fill: #24292f; font: 12px system-ui, sans-serif }
.title { font-size: 15px; font-weight: 600 } .head { font-weight: 600 }
.grid { stroke: #d8dee4 } .frame { stroke: #8c959f; fill: none } polyline { fill: none; stroke-width: 1.8 }
.c0 { stroke: #24292f } .c1 { stroke: #0969da } .c2 { stroke: #1a7f37 } .c3 { stroke: #8250df }
.c4 { stroke: #cf222e } .c5 { stroke: #bc6c00 } .c6 { stroke: #bf3989 }
.band { fill: #8c959f; fill-opacity: 0.15 } .dashed { stroke-dasharray: 5 3 }
@media (prefers-color-scheme: dark) {
.paper { fill: #0d1117 } text { fill: #e6edf3 } .grid { stroke: #30363d } .frame { stroke: #6e7681 }
.c0 { stroke: #f0f6fc } .c1 { stroke: #58a6ff } .c2 { stroke: #3fb950 } .c3 { stroke: #bc8cff }
.c4 { stroke: #ff7b72 } .c5 { stroke: #e3a008 } .c6 { stroke: #f778ba }
}
"""


class Axis(NamedTuple):
    """`ticks` are values with their texts; the first and the last are the ends of the axis."""

    label: str
    ticks: Sequence[tuple[float, str]]
    logarithmic: bool = False

    def place(self, value: float) -> float:
        """From 0 to 1; what lies outside is put on the edge."""
        low, high = self.ticks[0][0], self.ticks[-1][0]
        if self.logarithmic:
            value, low, high = math.log(max(value, low)), math.log(low), math.log(high)
        return min(1.0, max(0.0, (value - low) / (high - low)))


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
    legend = {line.name: line for panel in panels for line in panel.lines}
    per_row = (columns * WIDTH - LEFT) // LEGEND_COLUMN
    top = TITLE + LEGEND_ROW * math.ceil(len(legend) / per_row)
    width, height = columns * WIDTH, top + HEIGHT * math.ceil(len(panels) / columns)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
        f' role="img" aria-label="{escape(title)}">',
        f"<style>{STYLE}</style>",
        f'<rect class="paper" width="{width}" height="{height}" rx="6"/>',
        f'<text class="title" x="{LEFT}" y="22">{escape(title)}</text>',
    ]
    for number, line in enumerate(legend.values()):
        x, y = LEFT + LEGEND_COLUMN * (number % per_row), TITLE + LEGEND_ROW * (number // per_row) + 8
        parts += [
            _polyline(line, f"{x},{y} {x + 24},{y}"),
            f'<text x="{x + 30}" y="{y + 4}">{escape(line.name)}</text>',
        ]
    for number, panel in enumerate(panels):
        x, y = WIDTH * (number % columns), top + HEIGHT * (number // columns)
        parts += [f'<g transform="translate({x} {y})">', *_panel(panel), "</g>"]
    return "\n".join([*parts, "</svg>", ""])


def _panel(panel: Panel) -> list[str]:
    wide, high = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def x_of(value: float) -> float:
        return LEFT + wide * panel.x.place(value)

    def y_of(value: float) -> float:
        return TOP + high * (1 - panel.y.place(value))

    bottom, right = TOP + high, LEFT + wide
    parts = [f'<text class="head" x="{LEFT}" y="{TOP - 9}">{escape(panel.title)}</text>']
    if panel.band:
        begin, end = x_of(panel.band[0]), x_of(panel.band[1])
        parts.append(f'<rect class="band" x="{begin:.1f}" y="{TOP}" width="{end - begin:.1f}" height="{high}"/>')
    for value, text in panel.x.ticks:
        x = x_of(value)
        parts.append(f'<path class="grid" d="M{x:.1f} {TOP}V{bottom}"/>')
        parts.append(f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{escape(text)}</text>')
    for value, text in panel.y.ticks:
        y = y_of(value)
        parts.append(f'<path class="grid" d="M{LEFT} {y:.1f}H{right}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{escape(text)}</text>')
    parts.append(f'<rect class="frame" x="{LEFT}" y="{TOP}" width="{wide}" height="{high}"/>')
    middle = TOP + high / 2
    parts.append(f'<text x="{LEFT + wide / 2}" y="{bottom + 34}" text-anchor="middle">{escape(panel.x.label)}</text>')
    upright = f'x="13" y="{middle}" text-anchor="middle" transform="rotate(-90 13 {middle})"'
    parts.append(f"<text {upright}>{escape(panel.y.label)}</text>")
    for line in panel.lines:
        if line.points:
            parts.append(_polyline(line, " ".join(f"{x_of(x):.1f},{y_of(y):.1f}" for x, y in line.points)))
    return parts


def _polyline(line: Line, points: str) -> str:
    dashed = " dashed" if line.dashed else ""
    return f'<polyline class="c{line.colour}{dashed}" points="{points}"/>'
