"""Formats a profile: the most expensive functions and call paths of each route."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tricorn_tools.doctor.profile.analysis import Cost, Owner, Report, Worker, functions, heaviest
from tricorn_tools.doctor.stacks import Stack, name, place, split

MOST_FUNCTIONS, MOST_PATHS, MOST_OWNERS = 8, 4, 12
LEAST = 0.01
"""Smallest share of an owner's time that is shown."""
BEHIND = 0.05
"""Share of late samples from which on the report says that the sampler could not keep up."""

NAMES = {"loop": "Event loops, outside of requests", "thread": "Threads on CPU, outside of requests"}

Source = Callable[[str, int], str]
"""Returns a line of a source file; empty if it cannot be read."""


def text(report: Report, source: Source) -> str:
    blocks = ["\n".join(_workers(report))]
    blocks += ["\n".join(_owner(owner, source)) for owner in report.owners[:MOST_OWNERS]]
    if (left := len(report.owners) - MOST_OWNERS) > 0:
        blocks.append(f"(and {left} more routes: --format json shows them)")
    if not report.owners and report.workers:
        blocks.append("No requests, and no threads on CPU.")
    return "\n\n".join(blocks) + "\n"


def _workers(report: Report) -> Iterator[str]:
    for worker in report.workers:
        yield _worker(worker)
    for slot in report.missing:
        yield "A worker exited during the profile." if slot is None else f"Worker {slot} sent no profile."
    behind = [worker for worker in report.workers if worker.late > BEHIND * (worker.looks + worker.late)]
    if behind:
        looks, late = sum(worker.looks for worker in behind), sum(worker.late for worker in behind)
        yield (
            f"The sampler could not keep up and skipped {late} of {looks + late} samples. Sums are still right, since "
            "each sample counts for the time since the previous one; short calls may be missing. Use a lower --rate."
        )
    if lost := sum(worker.lost for worker in report.workers):
        yield f"Not included: {lost:.2f} s of samples, because memory for samples was full."


def _worker(worker: Worker) -> str:
    parts = [f"requests {worker.of['request']:.2f} s"]
    parts += [
        f"{word} {worker.of[of]:.2f} s" for of, word in (("loop", "loop"), ("thread", "threads")) if worker.of[of]
    ]
    looks = f"{worker.looks} samples in {worker.seconds:.1f} s, {worker.late} late, {worker.missed} missed"
    cut = "" if worker.ended else " (incomplete)"
    return (
        f"Worker {worker.slot} (pid {worker.pid}, {worker.kind}): {', '.join(parts)}; {looks}, "
        f"{worker.cost * 100:.1f} % CPU{cut}"
    )


def _owner(owner: Owner, source: Source) -> Iterator[str]:
    seen = sum(cost.seconds for cost in owner.stacks.values())
    if owner.of == "request":
        yield f"{owner.name}: {owner.seconds:.2f} s in {owner.requests} sampled requests"
    else:
        yield f"{NAMES[owner.of]}: {owner.seconds:.2f} s"
    if seen <= 0:
        yield "  No samples."
        return
    yield "     self        total"
    least = LEAST * seen
    for each in [each for each in functions([owner]) if each.own >= least][:MOST_FUNCTIONS]:
        shares = f"{each.own:7.2f} s {_share(each.own, seen)} {each.whole:8.2f} s {_share(each.whole, seen)}"
        yield (
            f"  {shares}  {each.file} {each.name}"
            if each.file.startswith("[")
            else f"  {shares}  {each.name} ({each.file})"
        )
    for stack, cost in [item for item in heaviest(owner) if item[1].seconds >= least][:MOST_PATHS]:
        yield from _path(stack, cost, seen, source)


def _path(whole: Stack, cost: Cost, seen: float, source: Source) -> Iterator[str]:
    stack, native = split(whole)
    *outer, inner = stack
    code = source(inner.file, inner.line)
    yield f"  {cost.seconds:.2f} s {_share(cost.seconds, seen)}  {place(inner)}{': ' + code if code else ''}"
    if native is not None:
        yield f"                in {name(native)}"
    for frame in reversed(outer):
        yield f"                from {place(frame)}"


def _share(part: float, whole: float) -> str:
    return f"{100 * part / whole:3.0f} %"
