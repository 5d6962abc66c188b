"""The HTML page of `tricorn tune`: the model's curves with the measured points, and all tables."""

from __future__ import annotations

from collections.abc import Iterator

from tricorn_bench.bench.report import page
from tricorn_bench.bench.report.charts import Chart, Row, Spec
from tricorn_bench.tune import model, report
from tricorn_bench.tune.calibrate import Calibration
from tricorn_bench.tune.model import Costs, Limits, Prediction
from tricorn_bench.tune.report import Findings
from tricorn_bench.tune.verdict import Verdict

BEYOND = 1.5
"""Workers that curves go on to, as a multiple of the most that were measured."""
LEAST_WORKERS = 4
"""Workers that curves go on to at least."""
POINTS = 24
"""Points of a curve."""


def html(found: Findings) -> str:
    """Raises BenchError without the library that draws."""
    machine = found.machine
    title = f"{found.application}: tricorn tune"
    first = f"{found.request}, within {report.limits(found)}."
    lines = [*report.recommendation(found).splitlines()[:1], first, f"{machine.get('cpu', '')} · {machine['kernel']}"]
    charts = [curves(found.calibration, found.verdict, found.limits)] if found.calibration and found.verdict else []
    parts = [
        page.remarks([*report.recommendation(found).split("\n\n")[-1].splitlines(), *report.remarks(found)]),
        page.figures(charts) if charts else "",
        *(page.section(table) for table in report.tables(found)),
        page.pairs("Machine", list(machine.items())),
    ]
    return page.document(title, [line for line in lines if line], parts)


def curves(calibration: Calibration, verdict: Verdict, limits: Limits) -> Chart:
    """Draws requests a second against workers: a line for each class and number of threads, points as measured."""
    known = [one.prediction for one in verdict.ranked if one.prediction is not None]
    most = max(LEAST_WORKERS, *(round(BEYOND * one.configuration.workers) for one in known))
    families = {family(one): one for one in known}
    lines = [row for name, one in families.items() for row in _line(name, one, calibration, limits, most)]
    points = list(_points(verdict))
    note = "Lines show the model, points the measurements; the bar through a point spans its rounds."
    return Chart("curve", "Requests per second by number of workers", note, _spec(lines, points))


def family(one: Prediction) -> str:
    """Names the line that a configuration is a point of: `gthread, 16 threads`."""
    name = one.configuration.worker_class or ""
    return f"{name}, {one.threads} threads" if one.threads > 1 else name


def _line(name: str, one: Prediction, calibration: Calibration, limits: Limits, most: int) -> Iterator[Row]:
    costs: Costs = calibration.costs[one.configuration.worker_class or ""]
    allowed = max(1, min(most, model.most_workers(costs, limits, one.threads)))
    step = max(1, allowed // POINTS)
    for workers in sorted({*range(1, allowed + 1, step), allowed}):
        predicted = model.predict(costs, limits, workers, one.threads)
        yield {"family": name, "workers": workers, "requests/s": round(predicted.rate, 2)}


def _points(verdict: Verdict) -> Iterator[Row]:
    for one in verdict.ranked:
        if one.prediction is not None:
            yield {
                "family": family(one.prediction),
                "workers": one.prediction.configuration.workers,
                "requests/s": round(one.rate, 2),
                "least": round(min(one.rates), 2),
                "most": round(max(one.rates), 2),
            }


def _spec(lines: list[Row], points: list[Row]) -> Spec:
    workers = {"field": "workers", "type": "quantitative", "title": "workers", "axis": {"grid": False, "format": ",d"}}
    rate = {"field": "requests/s", "type": "quantitative", "title": "requests/s", "axis": {"tickCount": 5}}
    legend = {"symbolType": "stroke", "symbolOpacity": 1}
    colour = {"field": "family", "type": "nominal", "sort": None, "legend": legend}
    encoding: Spec = {"x": workers, "y": rate, "color": colour}
    span = {**encoding, "y": {**rate, "field": "least"}, "y2": {"field": "most"}}
    return {
        "data": {"values": lines},
        "height": 260,
        "layer": [
            {"mark": {"type": "line", "strokeWidth": 2}, "encoding": encoding},
            {"data": {"values": points}, "mark": {"type": "rule", "strokeWidth": 2, "aria": False}, "encoding": span},
            {"data": {"values": points}, "mark": {"type": "point", "filled": True, "size": 60}, "encoding": encoding},
        ],
    }
