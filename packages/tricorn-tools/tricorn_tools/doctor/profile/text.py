"""A profile as lines of text: the functions that had most time, and the heaviest paths, for each route."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tricorn_tools.doctor.profile.analysis import Cost, Owner, Report, Worker, functions, heaviest
from tricorn_tools.doctor.stacks import Stack, name, place, split

MOST_FUNCTIONS, MOST_PATHS, MOST_OWNERS = 8, 4, 12
LEAST = 0.01
"""The share of an owner's time from which on a line is told."""
BEHIND = 0.05
"""The share of looks that may be late before it is said that the sampler could not keep up."""

NAMES = {"loop": "Event loops, outside of requests", "thread": "Threads that computed, outside of requests"}

Source = Callable[[str, int], str]
"""A line of a file, empty if it cannot be read."""


def text(report: Report, source: Source) -> str:
    blocks = ["\n".join(_workers(report))]
    blocks += ["\n".join(_owner(owner, source)) for owner in report.owners[:MOST_OWNERS]]
    if (left := len(report.owners) - MOST_OWNERS) > 0:
        blocks.append(f"{left} routes more: --format json has them")
    if not report.owners and report.workers:
        blocks.append("No request ran, and nothing computed.")
    return "\n\n".join(blocks) + "\n"


def _workers(report: Report) -> Iterator[str]:
    for worker in report.workers:
        yield _worker(worker)
    for slot in report.missing:
        which = "A worker has ended meanwhile, and" if slot is None else f"Worker {slot}"
        yield f"{which} has told nothing."
    behind = [worker for worker in report.workers if worker.late > BEHIND * (worker.looks + worker.late)]
    if behind:
        looks, late = sum(worker.looks for worker in behind), sum(worker.late for worker in behind)
        yield (
            f"The sampler could not keep up: {late} of {looks + late} looks were left out. Samples stand for the time "
            "since the one before, so that sums are right, and short things may be missing. Use a lower --rate."
        )
    if lost := sum(worker.lost for worker in report.workers):
        yield f"No room was left for {lost:.2f} s of samples."


def _worker(worker: Worker) -> str:
    parts = [f"requests {worker.of['request']:.2f} s"]
    parts += [
        f"{word} {worker.of[of]:.2f} s" for of, word in (("loop", "loop"), ("thread", "threads")) if worker.of[of]
    ]
    looks = f"{worker.looks} looks in {worker.seconds:.1f} s, {worker.late} late, {worker.missed} samples missed"
    cut = "" if worker.ended else " (not to its end)"
    return (
        f"Worker {worker.slot} (pid {worker.pid}, {worker.kind}): {', '.join(parts)}; {looks}, "
        f"{worker.cost * 100:.1f} % of a processor{cut}"
    )


def _owner(owner: Owner, source: Source) -> Iterator[str]:
    seen = sum(cost.seconds for cost in owner.stacks.values())
    if owner.of == "request":
        yield f"{owner.name}: {owner.seconds:.2f} s in {owner.requests} requests that were seen"
    else:
        yield f"{NAMES[owner.of]}: {owner.seconds:.2f} s"
    if seen <= 0:
        yield "  Nothing was seen of it."
        return
    yield "     own         with calls"
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
