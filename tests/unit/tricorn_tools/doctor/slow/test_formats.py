"""The report in its forms, of which one is shown by a browser."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tricorn_tools.doctor.slow import formats
from tricorn_tools.doctor.slow.analysis import Report, analyse
from tricorn_tools.doctor.slow.formats import page
from tricorn_tools.doctor.slow.text import NOTHING, text

from tests.harness.chromium import Chromium
from tests.unit.tricorn_tools.doctor.slow.test_analysis import answer, stack


def report() -> Report:
    return analyse(answer(stack(7, slow=400), stack(9, slow=100), usual=98, slow=2))


def test_text_names_line_and_callers() -> None:
    told = text(report(), lambda file, line: f"line {line} of {file}")
    assert "GET /: 2 of about 100 requests took longer than 0.25 s" in told
    assert "+200 ms  a.py:7 in inner: line 7 of a.py\n             from a.py:1 in outer" in told
    assert "3 samples" in told
    assert text(analyse({"workers": []}), lambda file, line: "") == NOTHING


def test_collapsed_stacks_have_the_outermost_frame_first() -> None:
    assert formats.collapsed(report()).splitlines() == [
        "GET /;outer (a.py:1);inner (a.py:7) 400000",
        "GET /;outer (a.py:1);inner (a.py:9) 100000",
    ]


def test_speedscope_finds_its_frames() -> None:
    told: Any = json.loads(json.dumps(formats.speedscope(report())))
    [profile] = told["profiles"]
    assert told["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    assert (profile["type"], profile["unit"], profile["startValue"]) == ("sampled", "seconds", 0)
    assert len(profile["samples"]) == len(profile["weights"]) == 2
    assert abs(profile["endValue"] - sum(profile["weights"])) < 1e-9
    names = [[told["shared"]["frames"][number]["line"] for number in sample] for sample in profile["samples"]]
    assert names == [[1, 7], [1, 9]]


def test_the_page_is_drawn_by_a_browser_in_light_and_dark(tmp_path: Path) -> None:
    file = tmp_path / "slow.html"
    file.write_text(page(report()), encoding="utf-8")
    with Chromium() as chromium:
        shown = chromium.open(file.as_uri())
        shown.see("GET /")
        shown.see("inner (a.py:7), 200 ms")
        widths = "[...document.querySelectorAll('.label')].map(each => each.getBoundingClientRect().width)"
        outer, first, second = shown.run(widths)
        assert abs(first - 4 * second) < 0.02 * outer
        assert shown.run("performance.getEntriesByType('resource').length") == 0
        colours = set()
        for scheme in ("light", "dark"):
            media = [{"name": "prefers-color-scheme", "value": scheme}]
            chromium.call("Emulation.setEmulatedMedia", shown.session, features=media)
            colours.add(shown.run("getComputedStyle(document.querySelector('.label')).backgroundColor"))
        assert len(colours) == 2
        shown.close()


def test_names_are_text_on_the_page() -> None:
    told = answer(slow=2)
    told["workers"][0]["profile"]["routes"][0]["route"] = "GET /<script>"
    assert "<script>" not in page(analyse(told))
