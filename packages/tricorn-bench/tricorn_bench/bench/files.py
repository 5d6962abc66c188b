"""The files of a report, in one directory."""

from __future__ import annotations

from pathlib import Path

from tricorn_bench.bench import result as results
from tricorn_bench.bench.report import drawing, text
from tricorn_bench.bench.report.charts import charts
from tricorn_bench.bench.report.page import page
from tricorn_bench.bench.result import Result


def write(result: Result, directory: Path) -> list[Path]:
    """JSON first: it is what the others can be made of again. Without the library that draws: no page and no charts."""
    directory.mkdir(parents=True, exist_ok=True)
    written = [directory / "result.json", directory / "report.md"]
    results.write(result, written[0])
    names: list[str] = []
    if drawing.available():
        folder = directory / "charts"
        folder.mkdir(exist_ok=True)
        for chart in charts(result):
            (folder / f"{chart.key}.svg").write_text(drawing.svg(chart, drawing.WIDE, alone=True))
            (folder / f"{chart.key}.png").write_bytes(drawing.png(chart))
            names.append(f"{chart.key}.svg")
        (directory / "report.html").write_text(page(result))
        written += [directory / "report.html", folder]
    written[1].write_text(text.markdown(result, iter(names)))
    return written
