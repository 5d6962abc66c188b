"""Probes an application in a process of its own: `tricorn bench` imports none.

python -m tricorn_bench.bench.probe MODULE:APPLICATION
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import traceback
from collections.abc import Mapping

from tricorn.errors import TricornError, of_the_application
from tricorn_bench.bench.errors import BenchError

MARK = "\ntricorn-bench-probe "
TIMEOUT = 120.0


def interface_of(
    application: str, python: str, directory: str | None = None, environment: Mapping[str, str] | None = None
) -> str | None:
    """`WSGI`, `ASGI`, `tornado` or `aiohttp`; None if the application does not tell.

    Raises BenchError if it cannot be loaded.
    """
    done = subprocess.run(
        [python, "-m", "tricorn_bench.bench.probe", application],
        cwd=directory,
        env={**os.environ, **(environment or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
    )
    _, mark, answer = done.stdout.rpartition(MARK)
    if not mark:
        last = (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]
        raise BenchError(f"Could not load the application {application!r}: {last}")
    told = json.loads(answer)
    if "error" in told:
        raise BenchError(f"Could not load the application {application!r}: {told['error']}")
    interface: str | None = told["interface"]
    return interface


def main() -> None:
    from tricorn.gateway import app_loader, interfaces

    sys.path.insert(0, os.getcwd())
    try:
        told: dict[str, str | None] = {"interface": interfaces.interface_of(app_loader.load(sys.argv[1]))}
    except TricornError as error:
        told = {"error": str(error)}
    except (Exception, SystemExit) as error:
        told = {"error": _sentence(error)}
    sys.stdout.write(MARK + json.dumps(told) + "\n")
    sys.stdout.flush()
    os._exit(0)  # threads that modules started must not keep it


def _sentence(error: BaseException) -> str:
    """`ModuleNotFoundError: No module named 'x' (shop.py:3)`."""
    text = f"{type(error).__name__}: {error}".partition("\n")[0]
    trace = of_the_application(error.__traceback__)
    frames = traceback.extract_tb(trace) if trace is not None else []
    if not frames:
        return text
    return f"{text} ({os.path.relpath(frames[-1].filename)}:{frames[-1].lineno})"


if __name__ == "__main__":
    main()
