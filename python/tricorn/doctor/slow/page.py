"""The report on slow requests as one page of HTML: a flame graph for each route. It needs no network and no script."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from tricorn.doctor.slow.analysis import Frame, Report, Route
from tricorn.doctor.slow.formats import name

STYLE = """\
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem;
  background: light-dark(#fff, #16181c); color: light-dark(#1b1d21, #e6e6e6); }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
p { color: light-dark(#555, #aaa); }
.flame { display: flex; flex-direction: column; overflow: hidden; }
.row { display: flex; }
.box { box-sizing: border-box; min-width: 0; }
.label { display: block; height: 1.5rem; line-height: 1.5rem; padding: 0 .3rem; overflow: hidden; white-space: nowrap;
  text-overflow: ellipsis; font: 12px/1.5rem ui-monospace, monospace; border: 1px solid light-dark(#fff, #16181c);
  border-radius: 3px; background: light-dark(hsl(var(--hue) 80% 78%), hsl(var(--hue) 45% 32%)); }
"""


class _Box:
    """A frame, and those that it called."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.inner: dict[Frame, _Box] = {}


def page(report: Report) -> str:
    routes = "".join(_route(route) for route in report.routes) or "<p>No request was slow yet.</p>"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Slow requests</title>'
        '<link rel="icon" href="data:,">'
        f"<style>{STYLE}</style></head><body><h1>What slow requests did that usual ones did not</h1>"
        f"{routes}</body></html>\n"
    )


def _route(route: Route) -> str:
    root = _Box()
    for line in route.lines:
        box = root
        box.seconds += line.more
        for frame in line.stack:
            box = box.inner.setdefault(frame, _Box())
            box.seconds += line.more
    summary = f"{route.slow} of about {route.requests} requests took longer than {route.boundary:g} s"
    return (
        f"<section><h2>{escape(route.name)}</h2><p>{escape(summary)}; the width is the time that each of them "
        f'was at it for longer than a usual one.</p><div class="flame">{"".join(_row(root))}</div></section>'
    )


def _row(box: _Box) -> Iterator[str]:
    if not box.inner:
        return
    yield '<div class="row">'
    for frame, inner in sorted(box.inner.items(), key=lambda item: -item[1].seconds):
        label = f"{name(frame)}, {inner.seconds * 1000:.0f} ms"
        hue = sum(frame.file.encode()) % 60
        yield f'<div class="box" style="width:{100 * inner.seconds / box.seconds:.3f}%">'
        yield f'<span class="label" style="--hue:{hue}" title="{escape(label)}">{escape(label)}</span>'
        yield from _row(inner)
        yield "</div>"
    yield "</div>"
