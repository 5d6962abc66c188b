"""`tricorn load URL`: sends requests, and tells how the server took them."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import TextIO

from tricorn.errors import ExitCode
from tricorn_bench.cli import load_flags
from tricorn_bench.load import Interrupted, LoadError, Plan, Progress, Result, hgrm, run, sample, summary

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
        print("Interrupted: the report is of what came until then.", file=sys.stderr)
        return INTERRUPTED
    if not result.answered:
        print("Error: no request was answered.", file=sys.stderr)
        return ExitCode.CONFIG
    return ExitCode.OK


def _measure(plan: Plan) -> tuple[Result, bool]:
    live = Live(sys.stderr)
    try:
        return run(plan, live.show), False
    except Interrupted as interrupted:
        if interrupted.result is None:
            raise KeyboardInterrupt from None
        return interrupted.result, True
    finally:
        live.end()


def _tell(command: load_flags.Command, result: Result) -> None:
    if command.hdr:
        try:
            with open(command.hdr, "w", encoding="ascii") as file:
                file.write(hgrm.text(result))
        except OSError as error:
            raise LoadError(f"--hdr {command.hdr}: {error.strerror}.") from None
    print(_report(command, result), flush=True)
    if result.left_out:
        print(f"Warning: there is no line for {result.left_out} more requests.", file=sys.stderr)
    for warning in summary.warnings(result):
        print(f"Warning: {warning}", file=sys.stderr)


def _report(command: load_flags.Command, result: Result) -> str:
    if command.as_csv:
        return sample.csv(result.samples)
    return json.dumps(result.as_json(), indent=2) if command.as_json else summary.text(result)


class Live:
    """How it is going: one line that changes on a terminal, a line a second elsewhere."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._is_terminal = stream.isatty()
        self._width = 0

    def show(self, progress: Progress) -> None:
        line = render(progress)
        if self._is_terminal:
            self._stream.write(f"\r{line:{self._width}}")
            self._width = len(line)
        else:
            self._stream.write(f"{line}\n")
        self._stream.flush()

    def end(self) -> None:
        """The line gives way to the report."""
        if self._width:
            self._stream.write(f"\r{'':{self._width}}\r")
            self._stream.flush()


def render(progress: Progress) -> str:
    latency = progress["latency"]
    parts = [f"{progress['seconds']:.0f} s", f"{progress['rate']:,.0f} req/s", f"{progress['answered']:,} answered"]
    if latency:
        parts.append(f"p50 {latency['p50'] * 1e3:.2f} ms, p99 {latency['p99'] * 1e3:.2f} ms")
    parts.append(f"{progress['connections']} connections")
    if progress["late"]:
        parts.append(f"{progress['late']:,} late")
    if progress["failed"]:
        parts.append(f"{progress['failed']:,} errors")
    return "   ".join(parts)
