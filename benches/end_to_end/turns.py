"""Servers take turns, round after round, at whatever a part of a benchmark does with one."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import TypeVar

from benches.end_to_end.rounds import progress
from benches.end_to_end.servers import Kind
from benches.harness import environment
from benches.harness.process import DidNotServe

Round = TypeVar("Round")


def wanted(kinds: Sequence[Kind], arguments: argparse.Namespace) -> list[Kind]:
    """Those that `--servers` names by their beginnings."""
    names = tuple(arguments.servers.split(",")) if arguments.servers else ("",)
    return [kind for kind in kinds if kind.name.startswith(names)]


def in_turns(
    kinds: Sequence[Kind], arguments: argparse.Namespace, one_round: Callable[[Kind], Round]
) -> tuple[dict[str, list[Round]], dict[str, str]]:
    """The rounds of every server, and of those that did not serve the reason."""
    failures = environment.installation_failures()
    chosen = wanted(kinds, arguments)
    absent = {
        kind.name: f"could not be installed: {failures[kind.package]}" for kind in chosen if kind.package in failures
    }
    rounds: dict[str, list[Round]] = {kind.name: [] for kind in chosen if kind.name not in absent}
    for number in range(arguments.rounds):
        for kind in chosen:
            if kind.name not in rounds:
                continue
            progress(f"  round {number + 1}: {kind.name}")
            try:
                rounds[kind.name].append(one_round(kind))
            except DidNotServe as reason:
                absent[kind.name] = str(reason)
                del rounds[kind.name]
    progress("")
    return rounds, absent
