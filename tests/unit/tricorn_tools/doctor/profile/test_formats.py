"""A profile in its forms, of which one is shown by a browser."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tricorn_tools.doctor.profile import formats
from tricorn_tools.doctor.profile.analysis import Report, analyse
from tricorn_tools.doctor.profile.formats import page
from tricorn_tools.doctor.profile.text import text

from tests.harness.chromium import Chromium
from tests.unit.tricorn_tools.doctor.profile.test_analysis import answer, owner, usual, worker


def report() -> Report:
    return analyse(usual())


def told(made: Report) -> str:
    return text(made, lambda file, line: f"line {line} of {file}")


def test_text_names_functions_and_paths_of_each_route() -> None:
    shown = told(report())
    assert "Worker 2 (pid 102, gevent): requests 0.45 s; 195 samples in 2.0 s, 5 late, 2 missed" in shown
    assert "GET /: 0.90 s in 6 sampled requests" in shown
    assert "     0.60 s  75 %     0.60 s  75 %  [libpq] PQexec\n" in shown
    assert "     0.20 s  25 %     0.80 s 100 %  inner (a.py)\n" in shown
    path = "  0.60 s  75 %  a.py:7 in inner: line 7 of a.py\n"
    assert f"{path}                in [libpq] PQexec\n                from a.py:3 in outer" in shown
    assert "Event loops, outside of requests: 0.20 s" in shown
    assert "could not keep up" not in shown


def test_text_says_what_is_not_known() -> None:
    made = analyse(answer(worker(1, looks=40, late=60, lost_microseconds=1_500_000, ended=False), missing=(3, None)))
    shown = told(made)
    assert "The sampler could not keep up and skipped 60 of 100 samples" in shown
    assert "Not included: 1.50 s of samples, because memory for samples was full." in shown
    assert "Worker 3 sent no profile." in shown
    assert "A worker exited during the profile" in shown
    assert "(incomplete)" in shown
    assert "No requests, and no threads on CPU." in shown


def test_collapsed_stacks_have_the_owner_and_the_outermost_frame_first() -> None:
    assert formats.collapsed(report()).splitlines() == [
        "GET /;outer (a.py:3);inner (a.py:7);[libpq] PQexec 600000",
        "GET /;outer (a.py:3);inner (a.py:7) 200000",
        "(event loop);background (b.py:1) 200000",
    ]


def test_speedscope_finds_its_frames() -> None:
    made: Any = json.loads(json.dumps(formats.speedscope(report())))
    first, second = made["profiles"]
    assert (first["name"], first["type"], first["unit"], second["name"]) == (
        "GET /",
        "sampled",
        "seconds",
        "(event loop)",
    )
    for profile in (first, second):
        assert len(profile["samples"]) == len(profile["weights"])
        assert abs(profile["endValue"] - sum(profile["weights"])) < 1e-9
    names = [[made["shared"]["frames"][number]["name"] for number in sample] for sample in first["samples"]]
    assert names == [["outer", "inner", "[libpq] PQexec"], ["outer", "inner"]]


def test_profile_in_json_is_complete() -> None:
    made: Any = json.loads(json.dumps(formats.plain(report())))
    assert made["schema"] == formats.SCHEMA
    assert [each["slot"] for each in made["workers"]] == [1, 2]
    route = made["owners"][0]
    assert (route["of"], route["seconds"], route["stacks"][0]["seconds"]) == ("request", 0.9, 0.6)
    assert route["functions"][0] == {"file": "[libpq]", "function": "PQexec", "own": 0.6, "whole": 0.6}


def test_the_page_is_drawn_by_a_browser_in_light_and_dark(tmp_path: Path) -> None:
    file = tmp_path / "profile.html"
    file.write_text(page(report()), encoding="utf-8")
    with Chromium() as chromium:
        shown = chromium.open(file.as_uri())
        shown.see("GET /")
        shown.see("[libpq] PQexec, 600 ms")
        shown.see("Event loops, outside of requests")
        widths = "[...document.querySelectorAll('.label')].map(each => each.getBoundingClientRect().width)"
        outer, inner, native, *_ = shown.run(widths)
        assert abs(inner - outer) < 0.02 * outer
        assert abs(native - 0.75 * outer) < 0.02 * outer
        assert shown.run("performance.getEntriesByType('resource').length") == 0
        colours = set()
        for scheme in ("light", "dark"):
            media = [{"name": "prefers-color-scheme", "value": scheme}]
            chromium.call("Emulation.setEmulatedMedia", shown.session, features=media)
            colours.add(shown.run("getComputedStyle(document.querySelector('.label')).backgroundColor"))
        assert len(colours) == 2
        shown.close()


def test_names_are_text_on_the_page() -> None:
    made = analyse(answer(worker(1, owner("request", "GET /<script>", [[0], 1, 1]))))
    assert "<script>" not in page(made)
