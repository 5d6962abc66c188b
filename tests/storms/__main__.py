"""Storms with new seeds, one after another:  python -m tests.storms --seconds 600

Stops at the first whose books do not balance, or goes on with `--go-on`; says how many there were. `--seed N` makes
that one again.
"""

from __future__ import annotations

import argparse
import collections
import random
import sys
import time

from tests.storms.storm import plan, rage


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.storms", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, help="only this one")
    parser.add_argument("--go-on", action="store_true", help="after a failure, too")
    arguments = parser.parse_args()
    dice = random.Random()
    end = time.monotonic() + arguments.seconds
    storms: collections.Counter[str] = collections.Counter()
    failed: list[int] = []
    while time.monotonic() < end and not (failed and not arguments.go_on):
        planned = plan(arguments.seed if arguments.seed is not None else dice.randrange(1 << 32))
        print(planned, flush=True)
        storms[planned.worker_class] += 1
        try:
            rage(planned)
        except AssertionError as error:
            failed.append(planned.seed)
            print(f"  FAILED: {error}", flush=True)
        if arguments.seed is not None:
            break
    each = ", ".join(f"{name} {count}" for name, count in sorted(storms.items()))
    print(f"{storms.total()} storms ({each}); {len(failed)} failed{': ' if failed else ''}{failed or ''}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
