"""The page and its charts: one file, no network, no script, light and dark."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from tricorn_bench.bench import files
from tricorn_bench.bench.report import drawing, page, tables
from tricorn_bench.bench.report.charts import charts
from tricorn_bench.bench.result import Result

from tests.unit.tricorn_bench.bench.made import a_result, over_workers


def with_theory() -> Result:
    result = over_workers()
    result["theory"] = [
        {"configuration": cell["configuration"], "at": cell["at"] or 0.0, "p50": 0.001, "p95": 0.002, "p99": 0.003}
        for cell in result["cells"]
    ]
    return result


@pytest.fixture(scope="module")
def html() -> str:
    """Of one result, whose application has a name that has to be escaped."""
    return page.page(a_result(application="<b>shop</b>"))


def test_the_page_loads_nothing_and_runs_nothing(html: str) -> None:
    assert "<script" not in html
    assert not re.search(r"""(?:src|href)\s*=\s*["'](?!#)""", html.replace("xmlns", ""))
    assert "url(http" not in html
    assert "default-src 'none'" in html


def test_every_number_of_the_tables_is_on_the_page(html: str) -> None:
    for table in tables.all_tables(a_result()):
        assert table.title in html
        assert all(f">{cell}</td>" in html for row in table.rows for cell in row)


def test_each_chart_is_there_for_wide_and_narrow_pages_with_ids_of_its_own(html: str) -> None:
    assert html.count('<div class="wide"><svg') == html.count('<div class="narrow"><svg') == len(charts(a_result()))
    ids = re.findall(r'\bid="([^"]+)"', html)
    assert len(ids) == len(set(ids))


def test_names_are_escaped(html: str) -> None:
    assert "<b>shop</b>" not in html
    assert "&lt;b&gt;shop&lt;/b&gt;" in html


def test_charts_follow_the_question() -> None:
    assert [chart.key for chart in charts(a_result())] == ["rate", "cpu", "memory", "distribution", "parts"]
    over = [chart.key for chart in charts(over_workers())]
    assert over == ["rate", "latency", "cpu", "memory", "distribution", "parts"]


@pytest.mark.parametrize("result", [a_result(), with_theory()], ids=["bars", "lines"])
def test_a_drawing_is_whole_and_its_colours_are_variables(result: Result) -> None:
    for chart in charts(result):
        drawn = drawing.svg(chart, drawing.WIDE, alone=True)
        ElementTree.fromstring(drawn)
        assert "prefers-color-scheme:dark" in drawn
        outside = drawn.replace(drawing.style("svg"), "")
        assert not re.findall(r'(?:fill|stroke)="#', outside), chart.key
        assert "var(--ink)" in outside
        assert "NaN" not in outside


def test_marks_tell_their_figures_as_tooltips() -> None:
    (rate, *_) = charts(a_result())
    assert re.search(r"<title>[^<]*requests/s: 100[^<]*</title>", drawing.svg(rate, drawing.WIDE, alone=False))


def test_the_files_of_a_report(tmp_path: Path) -> None:
    files.write(a_result(), tmp_path / "report")
    names = {path.relative_to(tmp_path / "report").as_posix() for path in tmp_path.rglob("*.*")}
    assert {"result.json", "report.md", "report.html", "charts/rate.svg", "charts/rate.png"} <= names
    assert (tmp_path / "report/charts/rate.png").read_bytes().startswith(b"\x89PNG")


def test_without_the_library_there_are_text_and_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "vl_convert", None)
    assert not drawing.available()
    files.write(a_result(), tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.md", "result.json"]
