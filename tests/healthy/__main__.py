"""Is anything false in what the doctor says?  python -m tests.healthy --seconds 450

A server of each class and event loop runs at the same time (8), so that 450 seconds are an hour of servers. `--seed N`
makes a load again. Exit status: 1 if a line was said that is wrong; what the machine has done to workers (it had no
processor for them) is shown and does not count.
"""

from __future__ import annotations

import argparse
import random
import sys
from concurrent.futures import ThreadPoolExecutor

from tests.healthy.service import CLASSES, Tally, watch


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.healthy", description=__doc__)
    parser.add_argument("--seconds", type=float, default=450)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--classes", nargs="*", default=CLASSES)
    parser.add_argument("--clients", type=int, default=3)
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}, {len(arguments.classes)} servers", flush=True)
    total = Tally()
    with ThreadPoolExecutor(len(arguments.classes)) as pool:
        running = {
            each: pool.submit(watch, each, arguments.seed + index, arguments.seconds, clients=arguments.clients)
            for index, each in enumerate(arguments.classes)
        }
        for name, future in running.items():
            tally = future.result()
            total.add(tally)
            print(
                f"{name}: {tally.requests} requests, {len(tally.false)} false, {len(tally.starved)} starved", flush=True
            )
    for line in total.false:
        print(f"  FALSE: {line}")
    print(
        f"{total.seconds / 3600:.2f} hours of servers, {total.requests} requests: {len(total.false)} false reports, "
        f"{len(total.starved)} of workers without a processor"
    )
    return 1 if total.false else 0


if __name__ == "__main__":
    sys.exit(main())
