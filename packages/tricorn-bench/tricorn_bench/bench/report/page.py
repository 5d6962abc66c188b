"""The report as one page: no script, no network, light and dark, narrow and wide."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

from tricorn_bench.bench.figures import BY_KEY, FIGURES
from tricorn_bench.bench.report import drawing, tables, text
from tricorn_bench.bench.report.charts import Chart, charts
from tricorn_bench.bench.report.layout import Table
from tricorn_bench.bench.result import Result

POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""Browsers keep it: whatever the page holds, it loads nothing (Content Security Policy)."""


def page(result: Result) -> str:
    """Raises BenchError without the library that draws."""
    lines = [f"{result['load']} Answer: {result['answer']}.", f"{result['made']} · {result['machine'].get('cpu', '')}"]
    parts = [
        _tiles(result),
        remarks(text.remarks(result)),
        figures(charts(result)),
        *(section(table) for table in tables.all_tables(result)),
        _meanings(),
        pairs("Machine", list(result["machine"].items())),
        pairs("Commands", [("tricorn bench", result["command"]), *_commands(result)]),
    ]
    return document(text.title(result), lines, parts)


def document(title: str, lines: Sequence[str], parts: Sequence[str]) -> str:
    """Makes the page of its parts, which are HTML; `lines` below the title are text. The last one is less important."""
    *first, last = lines
    head = [
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f'<meta name="color-scheme" content="light dark"><title>{escape(title)}</title>',
        f"<style>{drawing.style(':root')}{STYLE}</style></head><body><main>",
        f"<header><h1>{escape(title)}</h1>",
        *(f"<p>{escape(line)}</p>" for line in first),
        f'<p class="muted">{escape(last)}</p></header>',
    ]
    return "\n".join([*head, *(part for part in parts if part), "</main></body></html>\n"])


def _tiles(result: Result) -> str:
    """The best of each figure that people ask for first."""
    if result["axis"]:
        return ""
    tiles = []
    for key, label in (
        ("rate", "most requests/s"),
        ("cpu", "least CPU µs/request"),
        ("p99", "lowest p99 ms"),
        ("pss", "least PSS MiB"),
    ):
        figure = BY_KEY[key]
        values = [
            (value, cell["configuration"])
            for cell in result["cells"]
            if (value := figure.read(cell["rounds"])) is not None
        ]
        if values:
            value, name = max(values) if figure.better == "more" else min(values)
            tiles.append(f"<div><b>{figure.shown(value)}</b><span>{escape(label)}</span><em>{escape(name)}</em></div>")
    return f'<section class="tiles">{"".join(tiles)}</section>' if len(result["cells"]) > 1 else ""


def remarks(lines: Sequence[str]) -> str:
    return f'<ul class="remarks">{"".join(f"<li>{escape(one)}</li>" for one in lines)}</ul>' if lines else ""


def figures(drawn: Sequence[Chart]) -> str:
    """Draws the charts. Raises BenchError without the library that draws."""
    return "\n".join(['<section class="charts">', *map(_figure, drawn), "</section>"])


def _figure(chart: Chart) -> str:
    drawn = (
        f'<div class="{kind}">{_scalable(drawing.svg(chart, width, alone=False), f"{chart.key}-{kind}")}</div>'
        for kind, width in (("wide", drawing.WIDE), ("narrow", drawing.NARROW))
    )
    note = f"<p>{escape(chart.note)}</p>" if chart.note else ""
    caption = f"<figcaption><h2>{escape(chart.title)}</h2>{note}</figcaption>"
    return f'<figure id="{chart.key}">{caption}{"".join(drawn)}</figure>'


def _scalable(drawn: str, prefix: str) -> str:
    """Fits its column; and ids that Vega numbers in every chart alike are this chart's own."""
    drawn = re.sub(r'(\bid="|url\(#)', rf"\g<1>{prefix}-", drawn)
    return re.sub(r'<svg([^>]*?) width="[\d.]+" height="[\d.]+"', r"<svg\1", drawn, count=1)


def section(table: Table) -> str:
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in table.header)
    rows = "".join(
        "<tr>" + "".join(f"<td{_mark(cell)}>{escape(cell)}</td>" for cell in row) + "</tr>" for row in table.rows
    )
    note = f"<p>{escape(table.note)}</p>" if table.note else ""
    scroll = f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
    return f"<section><h2>{escape(table.title)}</h2>{note}{scroll}</section>"


def _mark(cell: str) -> str:
    word = cell.rpartition(" ")[2]
    return f' class="{word}"' if word in ("better", "worse", "noise") else ""


def _meanings() -> str:
    return pairs("Figures explained", [(figure.header, figure.note) for figure in FIGURES if figure.note])


def _commands(result: Result) -> Sequence[tuple[str, str]]:
    return [
        (f"{one['name']}{f' ({version})' if (version := one['version']) else ''}", one["command"])
        for one in result["configurations"]
        if one["command"]
    ]


def pairs(title: str, pairs: Sequence[tuple[str, str]]) -> str:
    rows = "".join(f"<dt>{escape(key)}</dt><dd>{escape(value)}</dd>" for key, value in pairs)
    return f"<section><h2>{escape(title)}</h2><dl>{rows}</dl></section>"


STYLE = """
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink)}
body{font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main{max-width:1180px;margin:0 auto;padding:2rem 1.25rem 4rem}
h1{font-size:1.6rem;line-height:1.25;margin:0 0 .4rem;overflow-wrap:anywhere}h2{font-size:1.05rem;margin:0}
p{margin:.2rem 0 .6rem;max-width:75ch}.muted,figcaption p,section>p{color:var(--muted);font-size:.87rem}
section{margin-top:2.4rem}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(11rem,1fr));gap:.8rem;margin-top:1.4rem}
.tiles div{border:1px solid var(--grid);border-radius:.6rem;padding:.8rem 1rem;display:flex;flex-direction:column}
.tiles b{font-size:1.7rem;line-height:1.2;font-variant-numeric:tabular-nums}
.tiles span{color:var(--muted);font-size:.85rem}
.tiles em{font-style:normal;font-size:.87rem;overflow-wrap:anywhere}
.remarks{border-left:3px solid var(--c2);margin:1.4rem 0 0;padding:.2rem 0 .2rem 2rem;font-size:.92rem}
.charts{display:grid;grid-template-columns:repeat(2,minmax(0,1fr));gap:1.2rem;align-items:start}
figure{margin:0;border:1px solid var(--grid);border-radius:.6rem;padding:1rem}
figure svg{display:block;width:100%;height:auto}.narrow{display:none}
.scroll{overflow-x:auto;margin-top:.6rem}table{border-collapse:collapse;font-size:.87rem;font-variant-numeric:tabular-nums}
th,td{padding:.32rem .7rem;text-align:right;white-space:nowrap;border-bottom:1px solid var(--grid)}
th:first-child,td:first-child{text-align:left;padding-left:0}th{color:var(--muted);font-weight:500}
.better{color:var(--c3)}.worse{color:var(--c8)}.noise{color:var(--muted)}
dl{display:grid;grid-template-columns:max-content minmax(0,1fr);gap:.25rem 1.2rem;font-size:.87rem;margin:.6rem 0 0}
dt{color:var(--muted)}dd{margin:0;overflow-wrap:anywhere}
@media(max-width:900px){.charts{grid-template-columns:minmax(0,1fr)}}
@media(max-width:560px){main{padding:1.2rem .9rem 3rem}.wide{display:none}.narrow{display:block}
figure{padding:.8rem .5rem}figcaption{padding:0 .3rem}
dl{grid-template-columns:minmax(0,1fr);gap:0}dd{margin-bottom:.5rem}}
"""
