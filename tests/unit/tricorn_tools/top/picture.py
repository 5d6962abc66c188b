"""A screen as a picture in both colour schemes: what a terminal makes of the styles, as an SVG for the documents."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from tricorn_tools.top.screen import Line

STYLE = """\
text { font: 13px ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace; white-space: pre }
.paper { fill: #fff } .ink, .bold { fill: #1f2328 } .bad { fill: #c01c28 } .warn { fill: #a347ba }
.head, .chosen { fill: #fff } .bar { fill: #1f2328 } .bold, .bad, .warn, .chosen { font-weight: 700 }
@media (prefers-color-scheme: dark) {
.paper { fill: #0d1117 } .ink, .bold { fill: #e6edf3 } .bad { fill: #ff7b72 } .warn { fill: #d2a8ff }
.head, .chosen { fill: #0d1117 } .bar { fill: #e6edf3 } }
"""
ADVANCE, LEADING, MARGIN = 7.825, 18, 12
"""Of a character and of a line, in pixels."""


def svg(lines: Iterable[Line], columns: int) -> str:
    drawn, count = [], 0
    for count, line in enumerate(lines, 1):
        top, x = MARGIN + (count - 1) * LEADING, 0
        for span in line:
            left, wide = MARGIN + x * ADVANCE, len(span.text) * ADVANCE
            if span.style in ("head", "chosen"):
                drawn.append(f'<rect class="bar" x="{left:.1f}" y="{top}" width="{wide:.1f}" height="{LEADING}"/>')
            if span.text.strip():
                drawn.append(
                    f'<text class="{span.style or "ink"}" x="{left:.1f}" y="{top + 13}" textLength="{wide:.1f}" '
                    f'xml:space="preserve">{escape(span.text)}</text>'
                )
            x += len(span.text)
    width, height = round(2 * MARGIN + columns * ADVANCE), 2 * MARGIN + count * LEADING
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">'
    paper = f'<rect class="paper" width="{width}" height="{height}" rx="6"/>'
    return "\n".join([head, f"<style>{STYLE}</style>", paper, *drawn, "</svg>", ""])
