"""Flame graphs in HTML without scripts or network: a tree of stacks, each frame as wide as its time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape

from tricorn_tools.doctor.stacks import Frame, Stack, name

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
NARROWEST = 0.001
"""Smallest share of a graph that is drawn."""
NATIVE = 200
"""Hue of native frames. Python frames have 0 to 59."""


class _Box:
    """A frame, and those that it called."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.inner: dict[Frame, _Box] = {}


def document(title: str, body: str) -> str:
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        '<link rel="icon" href="data:,">'
        f"<style>{STYLE}</style></head><body>{body}</body></html>\n"
    )


def graph(stacks: Iterable[tuple[Stack, float]]) -> str:
    """Draws stacks, each with its seconds."""
    root = _Box()
    for stack, seconds in stacks:
        box = root
        box.seconds += seconds
        for frame in stack:
            box = box.inner.setdefault(frame, _Box())
            box.seconds += seconds
    return f'<div class="flame">{"".join(_row(root, NARROWEST * root.seconds))}</div>'


def _row(box: _Box, least: float) -> Iterator[str]:
    drawn = [item for item in box.inner.items() if item[1].seconds > least]
    if not drawn:
        return
    yield '<div class="row">'
    for frame, inner in sorted(drawn, key=lambda item: -item[1].seconds):
        label = f"{name(frame)}, {_duration(inner.seconds)}"
        hue = sum(frame.file.encode()) % 60 if frame.is_python else NATIVE
        yield f'<div class="box" style="width:{100 * inner.seconds / box.seconds:.3f}%">'
        yield f'<span class="label" style="--hue:{hue}" title="{escape(label)}">{escape(label)}</span>'
        yield from _row(inner, least)
        yield "</div>"
    yield "</div>"


def _duration(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 10 else f"{seconds:.1f} s"
