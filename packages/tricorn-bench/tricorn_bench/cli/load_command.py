"""`tricorn load URL`: sends requests and reports latencies."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from tricorn.errors import ExitCode
from tricorn_bench.cli import load_flags
from tricorn_bench.load import Interrupted, LoadError, Plan, Progress, Result, hgrm, progress, run, sample, summary

INTERRUPTED = 130
"""128 + SIGINT; hey's status is 0 then, which a script would take for a complete run."""


def main(words: Sequence[str]) -> int:
    """Returns the exit status: 0; 1 if nothing was answered, or no load could be sent; 130 after SIGINT.

    Raises KeyboardInterrupt where there is nothing to report.
    """
    try:
        command = load_flags.parse(words)
        for note in command.notes:
            print(note, file=sys.stderr)
        result, is_interrupted = _measure(command.plan)
        _tell(command, result)
    except LoadError as error:
        return error.report()
    if is_interrupted:
        print("Interrupted: the report covers the time until then.", file=sys.stderr)
        return INTERRUPTED
    if not result.answered:
        print("Error: no request was answered.", file=sys.stderr)
        return ExitCode.CONFIG
    return ExitCode.OK


def _measure(plan: Plan) -> tuple[Result, bool]:
    try:
        return run(plan, lambda so_far: progress.show(sys.stderr, render(so_far))), False
    except Interrupted as interrupted:
        if interrupted.result is None:
            raise KeyboardInterrupt from None
        return interrupted.result, True
    finally:
        progress.clear(sys.stderr)


def _tell(command: load_flags.Command, result: Result) -> None:
    if command.hdr:
        try:
            with open(command.hdr, "w", encoding="ascii") as file:
                file.write(hgrm.text(result))
        except OSError as error:
            raise LoadError(f"--hdr {command.hdr}: {error.strerror}.") from None
    print(_report(command, result), flush=True)
    if result.left_out:
        print(f"Warning: {result.left_out} more requests are not listed.", file=sys.stderr)
    for warning in summary.warnings(result):
        print(f"Warning: {warning}", file=sys.stderr)


def _report(command: load_flags.Command, result: Result) -> str:
    if command.as_csv:
        return sample.csv(result.samples)
    return json.dumps(result.as_json(), indent=2) if command.as_json else summary.text(result)


def render(so_far: Progress) -> str:
    latency = so_far["latency"]
    parts = [f"{so_far['seconds']:.0f} s", f"{so_far['rate']:,.0f} req/s", f"{so_far['answered']:,} answered"]
    if latency:
        parts.append(f"p50 {latency['p50'] * 1e3:.2f} ms, p99 {latency['p99'] * 1e3:.2f} ms")
    parts.append(f"{so_far['connections']} connections")
    if so_far["late"]:
        parts.append(f"{so_far['late']:,} late")
    if so_far["failed"]:
        parts.append(f"{so_far['failed']:,} errors")
    return "   ".join(parts)
