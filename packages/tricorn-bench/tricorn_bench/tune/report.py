"""Formats the answer of `tricorn tune`: one screen for a terminal, and JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tricorn.record import Record
from tricorn_bench.bench.report import layout
from tricorn_bench.bench.report.layout import Table
from tricorn_bench.tune import usl
from tricorn_bench.tune.calibrate import Calibration
from tricorn_bench.tune.explain import Place
from tricorn_bench.tune.model import Kind, Limits, Prediction
from tricorn_bench.tune.verdict import LOADS, Finalist, Target, Verdict, predicted_error, seconds

SCHEMA = "tricorn-tune/1"
MIB = 2**20


class Findings(Record):
    """Findings so far. An interrupted run has the first parts only."""

    application: str
    request: str
    limits: Limits
    machine: Mapping[str, str]
    calibration: Calibration | None = None
    chosen: Sequence[Prediction] = ()
    places: Sequence[Place] = ()
    verdict: Verdict | None = None
    target: Target | None = None
    notes: Sequence[str] = ()


def text(found: Findings) -> str:
    parts = [recommendation(found), *(layout.plain(table.header, table.rows) for table in tables(found))]
    parts.append("\n".join(remarks(found)))
    return "\n\n".join(part for part in parts if part)


def tables(found: Findings) -> list[Table]:
    made = [_costs(found.calibration)] if found.calibration is not None else []
    if found.verdict is not None:
        return [*made, _measured(found.verdict)]
    return [*made, _predicted(found.chosen)] if found.chosen else made


def recommendation(found: Findings) -> str:
    """Formats the recommendation. Empty for an interrupted run."""
    verdict = found.verdict
    if verdict is None:
        return ""
    if verdict.refusal:
        return verdict.refusal
    best = verdict.best
    ours = best.name.startswith("tricorn ")
    lines = [f"Use: tricorn {found.application} {flags(best)}" if ours else f"Use: {best.name}", ""]
    if known := settings(best):
        lines += [*(f"    {line}" for line in known), ""]
    lines.append(f"Why: {_why(found, best)}")
    if verdict.today is best:
        lines.append("This is your current configuration.")
    elif verdict.today is not None and verdict.gain is not None:
        gain = verdict.gain
        spread = "" if gain.rounds < 2 else f" ({gain.low:.2f} to {gain.high:.2f})"
        memory = (best.memory - verdict.today.memory) / MIB
        lines.append(
            f"Compared with {verdict.today.name}: {gain.value:.2f} times the requests/s{spread}, {memory:+,.0f} MiB of "
            "memory."
        )
    if best.prediction is not None:
        lines.append(f"Next limit: {best.prediction.limit}.")
    return "\n".join(lines)


def flags(one: Finalist) -> str:
    """Formats a configuration as command line flags."""
    words = one.name.removeprefix("tricorn ")
    return words if words.startswith("-") else f"-k {words}"


def settings(one: Finalist) -> list[str]:
    """Formats a configuration as lines of gunicorn.conf.py."""
    if one.prediction is None:
        return []
    configuration = one.prediction.configuration
    lines = [f'worker_class = "{configuration.worker_class}"'] if configuration.worker_class else []
    lines.append(f"workers = {configuration.workers}")
    return [*lines, f"threads = {one.prediction.threads}"] if one.prediction.threads > 1 else lines


def _why(found: Findings, best: Finalist) -> str:
    assert found.calibration is not None
    name = best.prediction.configuration.worker_class if best.prediction is not None else None
    costs = found.calibration.costs.get(name or "") or min(found.calibration.costs.values(), key=lambda one: one.alone)
    waits = max(0.0, 1 - costs.cpu / costs.alone)
    sentence = f"a request takes {seconds(costs.alone)} and waits for {waits:.0%} of it"
    if found.places:
        sentence += " (" + ", ".join(f"{place.share:.0%} in {place.name}" for place in found.places) + ")"
    processors = found.limits.processors
    what = "one CPU is" if processors == 1 else f"{processors:g} CPUs are"
    sentence += f"; it uses {seconds(costs.cpu)} of CPU time, so {what} busy at "
    sentence += f"{processors / costs.cpu:,.0f} requests/s"
    if costs.kind is Kind.LOOP and 1 / costs.rate > 1.5 * costs.cpu:
        blocked = 1 / costs.rate - costs.cpu
        sentence += f"; calls block the event loop for {seconds(blocked)} of each request: more workers share that"
    return f"{sentence}."


def _costs(calibration: Calibration) -> Table:
    header = ("one worker", "alone", "CPU", "at once", "requests/s", "memory", "private")
    rows = [
        (
            costs.worker_class,
            seconds(costs.alone),
            seconds(costs.cpu),
            f"{costs.at_once:,}",
            per_second(costs.rate),
            f"{(costs.base + costs.worker) / MIB:,.0f} MiB",
            f"{costs.worker / MIB:,.1f} MiB",
        )
        for costs in calibration.costs.values()
    ]
    return Table("One worker of each class", header, tuple(rows))


def _predicted(chosen: Sequence[Prediction]) -> Table:
    header = ("predicted", "requests/s", "memory")
    rows = [(one.configuration.name, per_second(one.rate), f"{one.memory / MIB:,.0f} MiB") for one in chosen]
    return Table("Predicted", header, tuple(rows))


def per_second(rate: float) -> str:
    """Formats a rate, with three digits for one below a hundred: `0.98`, `12.7`, `1,073`."""
    return f"{rate:,.0f}" if rate >= 100 else f"{rate:.3g}"


def _measured(verdict: Verdict) -> Table:
    header = ("measured", "requests/s", "predicted", *(f"p99 at {load:.0%}" for load in LOADS), "CPU", "memory")
    rows = []
    for one in verdict.ranked:
        error = predicted_error(one)
        tails = [one.latency(load, "p99") for load in LOADS]
        rows.append(
            (
                one.name,
                per_second(one.rate),
                "" if error is None or one.prediction is None else f"{per_second(one.prediction.rate)} ({error:+.0%})",
                *("" if tail is None else seconds(tail) for tail in tails),
                seconds(one.cpu),
                f"{one.memory / MIB:,.0f} MiB",
            )
        )
    return Table("Measured", header, tuple(rows))


def remarks(found: Findings) -> list[str]:
    absent = found.calibration.absent if found.calibration is not None else {}
    lines = [f"{name} was not measured: {why}." for name, why in absent.items()]
    lines += [*found.notes, f"Planned with {limits(found)}."]
    return [*lines, f"Measured with {found.request}; the best configuration may differ for other requests."]


def limits(found: Findings) -> str:
    """Formats the limits: `2 CPUs, 2,048 MiB of memory`."""
    allowed = found.limits
    parts = [f"{allowed.processors:g} CPU{'s' if allowed.processors != 1 else ''}"]
    if allowed.memory is not None:
        parts.append(f"{allowed.memory / MIB:,.0f} MiB of memory")
    if allowed.connections is not None:
        parts.append(f"{allowed.connections} database connections")
    return ", ".join(parts)


def as_json(found: Findings) -> dict[str, Any]:
    """Returns the whole result, `tricorn-tune/1`, in seconds, bytes and requests per second."""
    verdict = found.verdict
    return {
        "schema": SCHEMA,
        "application": found.application,
        "request": found.request,
        "machine": dict(found.machine),
        "limits": vars(found.limits),
        "target": None if found.target is None else str(found.target),
        "costs": {
            name: dict(vars(one)) for name, one in (found.calibration.costs if found.calibration else {}).items()
        },
        "absent": dict(found.calibration.absent) if found.calibration else {},
        "places": [vars(place) for place in found.places],
        "predicted": [_prediction(one) for one in found.chosen],
        "measured": [_finalist(one, found.target) for one in (verdict.ranked if verdict else ())],
        "recommended": verdict.best.name if verdict and not verdict.refusal else None,
        "refusal": verdict.refusal or None if verdict else None,
        "today": verdict.today.name if verdict and verdict.today else None,
        "gain": vars(verdict.gain) if verdict and verdict.gain else None,
        "curve": _curve(verdict) if verdict else None,
        "notes": list(found.notes),
    }


def _prediction(one: Prediction) -> dict[str, Any]:
    return {
        "configuration": one.configuration.name,
        "rate": one.rate,
        "memory": one.memory,
        "connections": one.connections,
        "limit": one.limit,
    }


def _finalist(one: Finalist, target: Target | None) -> dict[str, Any]:
    return {
        "configuration": one.name,
        "rates": one.rates,
        "rate_within_target": one.rate_within(target),
        "predicted": None if one.prediction is None else one.prediction.rate,
        "error": predicted_error(one),
        "cpu": one.cpu,
        "memory": one.memory,
        "failed": one.failed,
        "latency": {
            f"{load:g}": {quantile: one.latency(load, quantile) for quantile in ("p50", "p95", "p99")} for load in LOADS
        },
    }


def _curve(verdict: Verdict) -> dict[str, Any] | None:
    """Fits the scalability law to the best class. None for fewer than three numbers of workers."""
    best = verdict.best.prediction
    if best is None:
        return None
    same = [
        one.prediction
        for one in verdict.ranked
        if one.prediction and one.prediction.configuration.worker_class == best.configuration.worker_class
    ]
    rates = {one.name: one.rate for one in verdict.ranked}
    fit = usl.fit([(one.configuration.workers, rates[one.configuration.name]) for one in same])
    return None if fit is None else dict(vars(fit))
