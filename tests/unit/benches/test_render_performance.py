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
    assert performance.newest(tmp_path) == {}
    assert "make bench NAME=classic" in performance.render({})


def test_each_table_is_that_of_the_newest_run_that_has_it(tmp_path: Path) -> None:
    for run, name in (
        ("2026-01-02-classic", "users-io"),
        ("2026-01-02-classic", "memory"),
        ("2026-11-22-classic", "users-io"),
        ("2026-12-01-herd", "users-io"),
    ):
        a_run(tmp_path / run, name, over_users())
    old, new = tmp_path / "2026-01-02-classic", tmp_path / "2026-11-22-classic"
    assert {name: run for name, (run, _) in performance.newest(tmp_path).items()} == {"memory": old, "users-io": new}
    page = performance.render(performance.newest(tmp_path))
    runs = [line for line in page.splitlines() if line.startswith("* [")]
    assert [line.split("]")[0] for line in runs] == ["* [2026-11-22-classic", "* [2026-01-02-classic"]
    assert all("1 table: " in line and "Servers: gunicorn " in line for line in runs)


def test_each_table_has_its_date_and_its_command(tmp_path: Path) -> None:
    page = performance.render({"users-io": (tmp_path / "2026-01-02-classic", over_users())})
    line = next(line for line in page.splitlines() if line.startswith("* Load: "))
    assert line.endswith(
        ": `python -m benches.classic --only users-io`, [2026-01-02-classic](../../benches/runs/2026-01-02-classic)."
    )
    assert f"Measured {over_users()['made'].split()[0]}: " in line


def test_users_who_still_wait_are_apart_from_errors(tmp_path: Path) -> None:
    page = performance.render({"users-io": (tmp_path, over_users())})
    rows = {row.split("|")[1].strip(): row.split("|")[2].strip() for row in page.splitlines() if row.startswith("| ")}
    assert rows["tricorn gevent"] == "100/s, 1 ms"
    assert rows["gunicorn gevent"] == "97/s, 2 ms, **5 errors**, 7 waiting"


def test_a_blend_has_its_chart_and_its_raw_data(tmp_path: Path) -> None:
    page = performance.render({"blend-90-10": (tmp_path / "2026-11-22-classic", over_workers())})
    assert "(../../benches/runs/2026-11-22-classic/blend-90-10/charts/rate.svg)" in page
    assert "[2026-11-22-classic](../../benches/runs/2026-11-22-classic)" in page
