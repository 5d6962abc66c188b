"""The page of the classical measurements, from results that are made up."""

from __future__ import annotations

from pathlib import Path

from tricorn_bench.bench import result as results
from tricorn_bench.bench.result import Result

from benches.render import performance
from tests.unit.tricorn_bench.bench.made import a_result, a_round, over_workers


def a_run(folder: Path, name: str, result: Result) -> Path:
    results.write(result, folder / name / "result.json")
    return folder


def over_users() -> Result:
    busy = a_round((1000,) * 95 + (2000,) * 5)
    busy["load"]["errors"] = {"connect": 2}
    busy["load"]["unanswered"] = 7
    busy["load"]["statuses"] = {"200": 97, "500": 3}
    found = a_result({f"tricorn gevent {performance.UNLIMITED}": [a_round()], "gunicorn gevent": [busy]})
    found["axis"] = "users"
    for cell in found["cells"]:
        cell["at"] = 10_000.0
    return found


def test_without_a_run_the_page_says_how_to_make_one(tmp_path: Path) -> None:
    assert performance.newest(tmp_path) is None
    assert "make bench NAME=classic" in performance.render(None)


def test_the_newest_run_is_rendered(tmp_path: Path) -> None:
    for name in ("2026-01-02-classic", "2026-11-22-classic", "2026-12-01-herd"):
        (tmp_path / name).mkdir()
    assert performance.newest(tmp_path) == tmp_path / "2026-11-22-classic"


def test_users_who_still_wait_are_apart_from_errors(tmp_path: Path) -> None:
    page = performance.render(a_run(tmp_path, "users-io", over_users()))
    rows = {row.split("|")[1].strip(): row.split("|")[2].strip() for row in page.splitlines() if row.startswith("| ")}
    assert rows["tricorn gevent"] == "100/s, 1 ms"
    assert rows["gunicorn gevent"] == "97/s, 2 ms, **5 errors**, 7 waiting"


def test_a_blend_has_its_chart_and_its_raw_data(tmp_path: Path) -> None:
    run = a_run(tmp_path / "2026-11-22-classic", "blend-90-10", over_workers())
    page = performance.render(run)
    assert "(../../benches/runs/2026-11-22-classic/blend-90-10/charts/rate.svg)" in page
    assert "[2026-11-22-classic](../../benches/runs/2026-11-22-classic)" in page
