"""The charts of a result, as Vega-Lite: data and encodings, no colours and no sizes (`drawing.py` has these)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from tricorn.record import Record
from tricorn_bench.bench.figures import BY_KEY, Figure, merged
from tricorn_bench.bench.report.tables import at_of
from tricorn_bench.bench.result import Cell, Result, configured

Row = dict[str, Any]
Spec = dict[str, Any]

NINES = (0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999999)
"""Tick marks of the distribution's axis."""
DASHES = [[1, 0], [7, 4], [2, 3]]
"""Dashes of the percentiles' lines."""
STEP = 0.02
"""Smallest visible step on the distribution's axis: closer points are left out of the file."""
POWERS = [10.0**power for power in range(-3, 7)]
"""Tick marks of a logarithmic axis, in milliseconds."""
LOGARITHMIC = ("users", "connections")
BAR_STEP, BAR = 42, 15
"""Pixels: of a row with its name above the bar, of the bar."""


class Chart(Record):
    key: str
    title: str
    note: str
    spec: Spec


def charts(result: Result) -> list[Chart]:
    found = _over_axis(result) if result["axis"] else _bars_of_all(result)
    return [*found, *_distribution(result), *_parts(result)]


# ---- A bar for each configuration


def _bars_of_all(result: Result) -> list[Chart]:
    rate, cells = BY_KEY["rate"], result["cells"]
    rows = []
    for cell in cells:
        values = rate.per_round(cell["rounds"]) or [0.0]
        value = rate.read(cell["rounds"]) or 0.0
        rows.append(
            {
                "configuration": cell["configuration"],
                "family": cell["configuration"],
                "requests/s": round(value, 1),
                "least": min(values),
                "most": max(values),
                "text": rate.shown(value),
            }
        )
    charts = [
        Chart(
            "rate",
            "Requests per second",
            "The line across a bar shows the range of its rounds.",
            _bars(rows, "requests/s"),
        )
    ]
    cpu = [
        {"configuration": cell["configuration"], "part": part, "µs": round(BY_KEY[part].read(cell["rounds"]) or 0.0, 2)}
        for cell in cells
        for part in ("user", "system")
    ]
    charts.append(
        Chart(
            "cpu", "CPU time per request", "µs, all processes of the server.", _stacked(cpu, "µs", ("user", "system"))
        )
    )
    memory = [
        {
            "configuration": cell["configuration"],
            "kind": key.upper(),
            "MiB": round(BY_KEY[key].read(cell["rounds"]) or 0.0, 1),
        }
        for cell in cells
        for key in ("uss", "pss", "rss")
    ]
    note = "MiB of all processes. A page shared by n processes counts 1/n in PSS, n times in RSS, and not in USS."
    return [*charts, Chart("memory", "Memory", note, _grouped(memory, "MiB", ("USS", "PSS", "RSS")))]


def _bars(rows: list[Row], field: str) -> Spec:
    y = {"field": "configuration", "type": "nominal", "sort": None, "axis": None}
    x = {"field": field, "type": "quantitative", "axis": {"grid": True, "tickCount": 4}, "title": None}
    return {
        "data": {"values": rows},
        "height": {"step": BAR_STEP},
        "encoding": {"y": y},
        "layer": [
            {
                "mark": {"type": "bar", "height": BAR, "yOffset": 8, "cornerRadiusEnd": 3},
                "encoding": {"x": x, "color": {"field": "family", "type": "nominal", "legend": None, "sort": None}},
            },
            {
                "mark": {"type": "rule", "yOffset": 8, "strokeWidth": 1.5, "color": "INK", "aria": False},
                "encoding": {"x": {"field": "least", "type": "quantitative"}, "x2": {"field": "most"}},
            },
            _names(),
            _figures(),
        ],
    }


def _names() -> Spec:
    """A configuration's name stands over its bar: beside it there is no room on a narrow page."""
    mark = {"type": "text", "align": "left", "baseline": "bottom", "dy": -3, "fontSize": 12, "limit": 0, "aria": False}
    return {"mark": mark, "encoding": {"text": {"field": "configuration"}, "x": {"value": 0}}}


def _figures() -> Spec:
    mark = {"type": "text", "align": "right", "baseline": "bottom", "dy": -3, "fontSize": 12, "aria": False}
    return {
        "mark": {**mark, "fontWeight": 600},
        "encoding": {"text": {"field": "text", "type": "nominal"}, "x": {"value": "width"}},
    }


def _stacked(rows: list[Row], field: str, parts: Sequence[str]) -> Spec:
    totals: dict[str, float] = {}
    for row in rows:
        totals[row["configuration"]] = totals.get(row["configuration"], 0.0) + row[field]
    digits = 1 if max(totals.values(), default=0.0) < 1000 else 0
    sums = [{"configuration": name, "text": f"{total:,.{digits}f} {field}"} for name, total in totals.items()]
    y = {"field": "configuration", "type": "nominal", "sort": None, "axis": None}
    numbered = [{**row, "place": parts.index(row["part"])} for row in rows]
    return {
        "data": {"values": numbered},
        "height": {"step": BAR_STEP},
        "encoding": {"y": y},
        "layer": [
            {
                "mark": {"type": "bar", "height": BAR, "yOffset": 8},
                "encoding": {
                    "x": {
                        "field": field,
                        "type": "quantitative",
                        "stack": "zero",
                        "title": None,
                        "axis": {"tickCount": 4},
                    },
                    "color": {"field": "part", "type": "nominal", "sort": list(parts), "scale": _shades(parts)},
                    "order": {"field": "place"},
                },
            },
            {"data": {"values": sums}, **_names()},
            {"data": {"values": sums}, **_figures()},
        ],
    }


def _grouped(rows: list[Row], field: str, kinds: Sequence[str]) -> Spec:
    names = [{"configuration": name} for name in dict.fromkeys(row["configuration"] for row in rows)]
    pss = [
        {"configuration": row["configuration"], "text": f"{row[field]:,.1f} {field} PSS"}
        for row in rows
        if row["kind"] == "PSS"
    ]
    y = {"field": "configuration", "type": "nominal", "sort": None, "axis": None}
    bars = []
    for place, kind in enumerate(kinds):
        bars.append(
            {
                "transform": [{"filter": f"datum.kind === '{kind}'"}],
                "mark": {"type": "bar", "height": 7, "yOffset": 3 + 8 * place},
                "encoding": {
                    "x": {"field": field, "type": "quantitative", "title": None, "axis": {"tickCount": 4}},
                    "color": {"field": "kind", "type": "nominal", "sort": list(kinds), "scale": _shades(kinds)},
                },
            }
        )
    return {
        "data": {"values": rows},
        "height": {"step": BAR_STEP + 10},
        "encoding": {"y": y},
        "layer": [*bars, {"data": {"values": names}, **_names()}, {"data": {"values": pss}, **_figures()}],
    }


def _shades(parts: Sequence[str]) -> Spec:
    """Parts of one thing are shades of one colour; the other colours are configurations."""
    return {"domain": list(parts), "range": [f"SHADE {place}" for place in range(1, len(parts) + 1)]}


# ---- Lines over the axis of a preset


def _over_axis(result: Result) -> list[Chart]:
    axis = result["axis"] or ""
    made = [
        Chart("rate", f"Requests per second by {axis}", "", _lines(result, ["rate"])),
        Chart("latency", f"Latency by {axis}", _latency_note(result), _lines(result, ["p50", "p95", "p99"])),
        Chart("cpu", f"CPU time per request by {axis}", "µs, all processes.", _lines(result, ["cpu"])),
        Chart("memory", f"Memory by {axis}", "PSS of all processes.", _lines(result, ["pss"])),
    ]
    for key in ("errors", "database"):
        if any(BY_KEY[key].read(cell["rounds"]) for cell in result["cells"]):
            made.append(Chart(key, f"{BY_KEY[key].label.capitalize()} by {axis}", "", _lines(result, [key])))
    return made


def _latency_note(result: Result) -> str:
    theory = " Dashes with dots: what M/M/W says of the p99." if result["theory"] else ""
    return f"Logarithmic scale. The dash pattern distinguishes percentiles.{theory}"


def _lines(result: Result, keys: Sequence[str]) -> Spec:
    rows = [row for cell in result["cells"] for row in _line_rows(result, cell, keys)]
    figure = BY_KEY[keys[0]]
    title = figure.header if len(keys) == 1 else f"latency {figure.unit}"
    logarithmic = len(keys) > 1 and all(row["value"] > 0 for row in rows)
    scale = {"type": "log"} if logarithmic else {"zero": True}
    marks = {"values": POWERS} if logarithmic else {"tickCount": 5}
    legend = {"symbolType": "stroke", "symbolOpacity": 1}
    colour = {"field": "family", "type": "nominal", "sort": None, "legend": legend}
    dashes = {
        "field": "percentile",
        "type": "nominal",
        "sort": list(keys),
        "scale": {"range": DASHES},
        "legend": {
            "symbolStrokeColor": "INK",
            "symbolType": "stroke",
            "symbolSize": 500,
            "orient": "bottom",
            "columns": len(keys),
        },
    }
    x = {
        "field": "at",
        "type": "quantitative",
        "title": result["axis"],
        "scale": _x_scale(result),
        "axis": _x_axis(result),
    }
    y = {"field": "value", "type": "quantitative", "title": title, "scale": scale, "axis": marks}
    encoding: Spec = {"x": x, "y": y, "color": colour}
    line = {**encoding, **({"strokeDash": dashes} if len(keys) > 1 else {})}
    band = {**encoding, "y": {**y, "field": "least"}, "y2": {"field": "most"}}
    if len(keys) > 1:
        band["detail"] = {"field": "percentile"}
    layers: list[Spec] = [
        {"mark": {"type": "area", "opacity": 0.12, "aria": False}, "encoding": band},
        {"mark": {"type": "line", "strokeWidth": 2}, "encoding": line},
        {"mark": {"type": "point", "filled": True, "size": 28}, "encoding": encoding},
    ]
    if len(keys) > 1 and result["theory"]:
        layers.append(_theory_layer(result, encoding))
    return {"data": {"values": rows}, "height": 260, "layer": layers}


def _line_rows(result: Result, cell: Cell, keys: Sequence[str]) -> Iterable[Row]:
    family = configured(result)[cell["configuration"]]["family"]
    for key in keys:
        figure: Figure = BY_KEY[key]
        value, values = figure.read(cell["rounds"]), figure.per_round(cell["rounds"])
        if value is not None and values:
            yield {
                "family": family,
                "at": cell["at"],
                "percentile": key,
                "value": round(value, 3),
                "least": min(values),
                "most": max(values),
            }


def _theory_layer(result: Result, encoding: Spec) -> Spec:
    families = configured(result)
    rows = [
        {"family": families[one["configuration"]]["family"], "at": one["at"], "value": one["p99"] * 1e3}
        for one in result["theory"]
    ]
    mark = {"type": "line", "strokeDash": [12, 3, 2, 3], "strokeWidth": 1.5}
    return {"data": {"values": rows}, "mark": mark, "encoding": encoding}


def _x_scale(result: Result) -> Spec:
    return {"type": "log"} if result["axis"] in LOGARITHMIC else {"zero": False, "nice": False}


def _x_axis(result: Result) -> Spec:
    places = sorted({cell["at"] for cell in result["cells"] if cell["at"] is not None})
    return {
        "values": places,
        "grid": False,
        "format": "~s" if result["axis"] in LOGARITHMIC else ",d",
        "labelOverlap": True,
    }


# ---- The distribution, on the scale of HDR histograms: every further nine has the same room


def _distribution(result: Result) -> list[Chart]:
    cells = _last_of_axis(result)
    rows = [row for cell in cells for row in _distribution_rows(cell)]
    if not rows:
        return []
    most = max(row["nines"] for row in rows)
    marks = [-math.log10(1 - share) for share in NINES if -math.log10(1 - share) <= most + 0.01]
    labels = " : ".join(
        f"abs(datum.value - {-math.log10(1 - share):.4f}) < 0.01 ? '{share * 100:.10g}%'" for share in NINES
    )
    spec = {
        "data": {"values": rows},
        "height": 260,
        "mark": {"type": "line", "strokeWidth": 2, "interpolate": "step-before"},
        "encoding": {
            "x": {
                "field": "nines",
                "type": "quantitative",
                "title": "share of the requests",
                "axis": {"values": marks, "labelExpr": f"{labels} : ''", "labelOverlap": False},
            },
            "y": {
                "field": "ms",
                "type": "quantitative",
                "title": "latency ms",
                "scale": {"type": "log"},
                "axis": {"values": POWERS},
            },
            "color": {"field": "configuration", "type": "nominal", "sort": None, "title": None},
        },
    }
    where = f" at {at_of(cells[0])} {result['axis']}" if result["axis"] else ""
    note = "Each point shows the share of requests that took no longer. Each further nine has equal width."
    return [Chart("distribution", f"Latency distribution{where}", note, spec)]


def _last_of_axis(result: Result) -> list[Cell]:
    """All cells, or those at the end of the axis."""
    last = max((cell["at"] for cell in result["cells"] if cell["at"] is not None), default=None)
    return [cell for cell in result["cells"] if cell["at"] == last]


def _distribution_rows(cell: Cell) -> Iterable[Row]:
    """The ends of buckets, thinned to even steps of the axis."""
    whole = merged(cell["rounds"])
    count, reached, last = whole.count, 0, -1.0
    for bucket in whole.buckets():
        reached += bucket.number
        nines = -math.log10(max(1 - reached / count, 0.5 / count))
        if nines >= last + STEP or reached == count:
            yield {"configuration": cell["configuration"], "nines": round(nines, 4), "ms": round(bucket.end * 1e3, 4)}
            last = nines


# ---- Where the time goes


def _parts(result: Result) -> list[Chart]:
    named = {"queue": "queue", "application": "application", "rest": "reading and writing"}
    rows = []
    for cell in _last_of_axis(result):
        several = [one["parts"] for one in cell["rounds"] if one["parts"] is not None]
        for key, part in named.items() if several else ():
            mean = sum(one[key] for one in several) / len(several)  # type: ignore[literal-required]
            rows.append({"configuration": cell["configuration"], "part": part, "ms": round(mean * 1e3, 4)})
    if not rows:
        return []
    note = "Mean times of a request inside tricorn: waiting for a worker, in the application, reading and writing."
    return [Chart("parts", "Where the time goes", note, _stacked(rows, "ms", tuple(named.values())))]
