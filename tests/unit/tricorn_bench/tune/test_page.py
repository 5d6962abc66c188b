"""The page of an answer: curves of the model, measured points, and what the terminal shows."""

from __future__ import annotations

from typing import Any

import pytest
from tricorn.record import replace
from tricorn_bench.bench.configuration import Configuration
from tricorn_bench.bench.report import drawing
from tricorn_bench.tune import model, page, report
from tricorn_bench.tune.calibrate import Calibration
from tricorn_bench.tune.model import Costs, Limits
from tricorn_bench.tune.report import Findings
from tricorn_bench.tune.verdict import Finalist, judge

from .test_verdict import MIB, one_round

LIMITS = Limits(2.0, memory=400 * MIB)
COSTS = {
    "sync": Costs("sync", 0.1, 0.002, 10.0, 1, 30 * MIB, 10 * MIB),
    "gthread": Costs("gthread", 0.1, 0.002, 480.0, 64, 30 * MIB, 10 * MIB),
}


def findings() -> Findings:
    predictions = [model.predict(COSTS["sync"], LIMITS, 8), model.predict(COSTS["gthread"], LIMITS, 2, 64)]
    finalists = [
        Finalist(one.configuration.name, one, {1.0: [one_round(rate, 0.2) for rate in (0.9 * one.rate, one.rate)]})
        for one in predictions
    ]
    return Findings(
        application="shop:app",
        request="GET /cart",
        limits=LIMITS,
        machine={"cpu": "a processor, 2 cores", "kernel": "Linux"},
        calibration=Calibration(COSTS, {"gevent": "gevent <3> is not installed"}),
        chosen=predictions,
        verdict=judge(finalists, predictions[0].configuration.name, None, LIMITS),
    )


def layers(found: Findings) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    assert found.calibration is not None
    assert found.verdict is not None
    spec = page.curves(found.calibration, found.verdict, found.limits).spec
    return spec["data"]["values"], spec["layer"][-1]["data"]["values"]


def test_a_curve_is_what_the_model_says() -> None:
    lines, _ = layers(findings())
    curve = {row["workers"]: row["requests/s"] for row in lines if row["family"] == "sync"}
    assert (curve[1], curve[8]) == (10.0, pytest.approx(80.0, rel=1e-3))
    assert max(curve) == 12, "half as many again as were measured"


def test_a_curve_ends_where_memory_does() -> None:
    found = findings()
    lines, _ = layers(found.__class__(**{**vars(found), "limits": Limits(2.0, memory=100 * MIB)}))
    assert max(row["workers"] for row in lines) == 5  # (0.8 · 100 − 30) / 10


def test_points_are_measured_and_span_their_rounds() -> None:
    _, points = layers(findings())
    sync = next(row for row in points if row["family"] == "sync")
    assert (sync["workers"], sync["least"], sync["most"]) == (8, 71.0, 79.0)
    assert {row["family"] for row in points} == {"sync", "gthread, 64 threads"}


@pytest.mark.skipif(not drawing.available(), reason="needs vl-convert-python")
def test_the_page_has_the_answer_and_loads_nothing() -> None:
    html = page.html(findings())
    assert "Use: tricorn shop:app -k gthread -w 2 --threads 64" in html
    assert "gevent &lt;3&gt; is not installed" in html
    assert "400 MiB of memory" in html
    assert html.count("<svg") == 2, "wide and narrow"
    assert "<script" not in html


def test_an_interrupted_run_has_a_page_without_a_chart() -> None:
    found = findings()
    early = Findings(found.application, found.request, found.limits, found.machine, found.calibration)
    html = page.html(early)
    assert "One worker of each class" in html
    assert "<svg" not in html


@pytest.mark.parametrize(("rate", "text"), [(0.9804, "0.98"), (12.66, "12.7"), (99.96, "100"), (1073.2, "1,073")])
def test_slow_applications_have_digits_behind_the_point(rate: float, text: str) -> None:
    assert report.per_second(rate) == text


def test_configurations_that_the_model_does_not_know_are_left_out() -> None:
    found = findings()
    assert found.verdict is not None
    foreign = Finalist(Configuration.parse("gunicorn sync").name, None, {1.0: [one_round(50.0, 0.2)]})
    verdict = judge([*found.verdict.ranked, foreign], foreign.name, None, LIMITS)
    assert found.calibration is not None
    chart = page.curves(found.calibration, verdict, found.limits)
    assert len(chart.spec["layer"][-1]["data"]["values"]) == 2


def test_a_server_that_the_model_does_not_know_has_no_settings() -> None:
    """Its line is all that is known: there is no gap where settings would be."""
    found = findings()
    foreign = Finalist("gunicorn sync", None, {1.0: [one_round(5000.0, 0.2)]})
    verdict = judge([foreign], foreign.name, None, LIMITS)
    lines = report.recommendation(replace(found, verdict=verdict)).splitlines()
    assert lines[:2] == ["Use: gunicorn sync", ""]
    assert lines[2].startswith("Why: ")
