"""Draws the pictures of README.md and docs/: `make docs-pictures`.

    python scripts/render_pictures.py

docs/images/stall.svg is what a terminal shows while a coroutine blocks its event loop: the server runs on a
pseudo-terminal, and its colours become those of the page's scheme. docs/images/cpu.svg has the CPU time per request of
the runs in BARS. Both follow the colour scheme of the reader. Screenshots of pages come from tests/docs/pictures.py.
"""

from __future__ import annotations

import os
import pty
import re
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
import textwrap
import time
import urllib.request
from html import escape
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs/images"

APPLICATION = """\
import time

async def app(scope, receive, send):
    if scope["path"] == "/report":
        time.sleep(0.5)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"done\\n"})
"""
COLUMNS = 96
FOLDER = "/srv/shop"
"""Shown in place of the temporary directory of the application."""

COLOURS = {"2": "dim", "31": "bad", "32": "good", "33": "warn"}
STYLE = """\
text { font: 13px ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace; white-space: pre }
.sans { font-family: system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif } .title { font-weight: 600 }
.paper { fill: #fff; stroke: #d1d9e0 } .ink { fill: #1f2328 } .dim { fill: #59636e }
.good { fill: #1a7f37 } .warn { fill: #9a6700 } .bad { fill: #c01c28 } .ours { fill: #0969da } .theirs { fill: #afb8c1 }
@media (prefers-color-scheme: dark) {
.paper { fill: #0d1117; stroke: #3d444d } .ink { fill: #e6edf3 } .dim { fill: #9198a1 }
.good { fill: #3fb950 } .warn { fill: #d29922 } .bad { fill: #ff7b72 }
.ours { fill: #4493f8 } .theirs { fill: #656c76 } }
"""
ADVANCE, LEADING, MARGIN = 7.825, 19, 14
"""Of a character and of a line, in pixels."""


class Bar(NamedTuple):
    label: str
    configuration: str
    """Of the run's report."""


BARS = (
    (
        "FastAPI, async endpoint",
        "2026-11-28-cases/fastapi-async",
        (
            Bar("tricorn", "tricorn asgi -w 1"),
            Bar("granian", "granian --workers 1 --http 1 --no-ws --loop uvloop"),
            Bar("uvicorn", "uvicorn --loop uvloop --http httptools"),
            Bar("hypercorn", "hypercorn --worker-class asyncio"),
        ),
    ),
    (
        "Flask, JSON",
        "2026-11-28-wsgi/flask-json",
        (
            Bar("tricorn", "tricorn sync -w 1"),
            Bar("granian", "granian --workers 1 --http 1 --no-ws --blocking-threads 8"),
            Bar("gunicorn gthread", "gunicorn gthread -w 1 --threads 8"),
            Bar("gunicorn sync", "gunicorn sync -w 1"),
        ),
    ),
)


def main() -> int:
    (IMAGES / "stall.svg").write_text(terminal(session()))
    (IMAGES / "cpu.svg").write_text(bars())
    return 0


def session() -> list[str]:
    """Returns what the server writes to a terminal while a request blocks its event loop."""
    with tempfile.TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0)) as taken:
        (Path(folder) / "main.py").write_text(APPLICATION)
        port = taken.getsockname()[1]
        taken.close()
        ours, theirs = pty.openpty()
        command = [f"{Path(sys.executable).parent}/tricorn", "main:app", "-k", "asgi", "-b", f"127.0.0.1:{port}"]
        server = subprocess.Popen(command, cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs)
        os.close(theirs)
        try:
            shown = _until(ours, "Ready")
            urllib.request.urlopen(f"http://127.0.0.1:{port}/report", timeout=30).read()
            shown += _until(ours, "main.py")
        finally:
            server.send_signal(signal.SIGINT)
            server.wait()
            os.close(ours)
        text = shown.replace(os.path.realpath(folder), FOLDER).replace(str(port), "8000").replace("\r", "")
        return ["$ tricorn main:app", *text.rstrip().splitlines()]


def _until(descriptor: int, words: str) -> str:
    """Reads a terminal until a whole line with these words has come."""
    text, end = "", time.monotonic() + 60
    while not re.search(rf"{words}.*\n", text):
        if time.monotonic() > end:
            raise SystemExit(f"the server does not write {words!r}:\n{text}")
        text += os.read(descriptor, 65536).decode()
    return text


def terminal(lines: list[str]) -> str:
    drawn: list[str] = []
    count = 0
    for line in lines:
        for part in _wrapped(line):
            drawn.append(f'<text x="{MARGIN}" y="{MARGIN + 14 + count * LEADING}">{_spans(part)}</text>')
            count += 1
    return _svg(round(2 * MARGIN + COLUMNS * ADVANCE), 2 * MARGIN + count * LEADING, drawn)


def _wrapped(line: str) -> list[str]:
    """Breaks a line between words, and indents what follows below the message."""
    head = re.match(r".*\x1b\[0m ", line)
    start = head[0] if head else ""
    indent = len(re.sub(r"\x1b\[\d*m", "", start))
    text = line[len(start) :].replace(" %", "\N{NO-BREAK SPACE}%")
    first, *rest = textwrap.wrap(text, COLUMNS - indent, break_long_words=False) or [""]
    return [start + first, *(" " * indent + part for part in rest)]


def _spans(text: str) -> str:
    style, spans = "ink", []
    for part in re.split(r"(\x1b\[\d*m)", text):
        code = re.fullmatch(r"\x1b\[(\d*)m", part)
        if code:
            style = COLOURS.get(code[1], "ink")
        elif part:
            spans.append(f'<tspan class="{style}" xml:space="preserve">{escape(part)}</tspan>')
    return "".join(spans)


def bars() -> str:
    width, label, wide = 780, 130, 500
    drawn: list[str] = []
    y = MARGIN + 16
    for title, run, chosen in BARS:
        report = _report(run)
        costs = [(bar.label, _cost(report, bar.configuration)) for bar in chosen]
        most = max(cost for _, cost in costs)
        drawn.append(f'<text class="ink sans title" x="{MARGIN}" y="{y}">{title}: CPU µs per request</text>')
        for name, cost in costs:
            y += 26
            kind = "ours" if name == "tricorn" else "theirs"
            long = cost / most * wide
            drawn += [
                f'<text class="ink sans" x="{MARGIN}" y="{y}">{name}</text>',
                f'<rect class="{kind}" x="{MARGIN + label}" y="{y - 13}" width="{long:.1f}" height="17" rx="2"/>',
                f'<text class="dim sans" x="{MARGIN + label + long + 8:.1f}" y="{y}">{cost:.0f}</text>',
            ]
        y += 40
    return _svg(width, y - 12, drawn)


def _report(run: str) -> str:
    """Reads a report of a run, which is packed."""
    folder, case = run.split("/")
    with tarfile.open(ROOT / "benches/runs" / folder / "data.tar.xz") as archive:
        file = archive.extractfile(f"{case}/report.md")
        if file is None:
            raise SystemExit(f"no report of {run}")
        return file.read().decode()


def _cost(report: str, configuration: str) -> float:
    found = re.search(rf"^\| {re.escape(configuration)} +\| +[\d,]+ \| +([\d.]+) \|", report, re.MULTILINE)
    if found is None:
        raise SystemExit(f"no row for {configuration!r}")
    return float(found[1])


def _svg(width: int, height: int, drawn: list[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">'
    paper = f'<rect class="paper" x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="6"/>'
    return "\n".join([head, f"<style>{STYLE}</style>", paper, *drawn, "</svg>", ""])


if __name__ == "__main__":
    sys.exit(main())
