"""Listener beside the user's locustfile: writes locust's statistics as JSON when it ends.

locust loads it (`-f locustfile.py,locust_listener.py`), so it imports nothing of tricorn. Used are locust's events and
the statistics of its environment (https://docs.locust.io/en/stable/api.html). Imported anywhere else it does nothing:
locust would patch that process for gevent.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

VARIABLE = "TRICORN_BENCH_LOCUST"
"""Environment variable with the path of the file to write."""

LEAVING = 10.0
"""Seconds in which workers have to tell their last figures."""

_times: dict[str, float] = {}


def _made(environment: Any, runner: Any, **_: Any) -> None:
    """A master dismisses its workers itself: by `--run-time` it would wait half a second for their last figures.

    Workers tell them when they are dismissed, and then leave; when the last one has left, the master ends.
    """
    from locust.runners import MasterRunner

    options = environment.parsed_options
    if isinstance(runner, MasterRunner) and options.run_time and environment.shape_class is None:
        _times["run"], options.run_time = options.run_time, None


def _begun(environment: Any, **_: Any) -> None:
    _times["begun"] = time.time()
    if "run" in _times:
        import gevent

        gevent.spawn_later(_times["run"], _dismiss, environment.runner)


def _dismiss(master: Any) -> None:
    import gevent

    _ended()
    master.send_message("quit")
    gevent.sleep(LEAVING)
    master.quit()


def _ended(**_: Any) -> None:
    _times.setdefault("ended", time.time())


def _quitting(environment: Any, **_: Any) -> None:
    import locust
    from locust.runners import WorkerRunner

    if isinstance(environment.runner, WorkerRunner):  # whose master has the statistics of all
        return
    told = {
        "version": locust.__version__,
        "begun": _times.get("begun", 0.0),
        "ended": _times.get("ended", time.time()),
        "entries": [_entry(entry) for entry in environment.stats.entries.values()],
        "failures": [
            {"method": one.method, "name": one.name, "error": str(one.error), "occurrences": one.occurrences}
            for one in environment.stats.errors.values()
        ],
        "exceptions": [
            {"message": one["msg"], "count": one["count"], "traceback": one["traceback"]}
            for one in environment.runner.exceptions.values()
        ],
    }
    path = os.environ[VARIABLE]
    with open(f"{path}.new", "w", encoding="utf-8") as file:
        json.dump(told, file)
    os.replace(f"{path}.new", path)


def _entry(entry: Any) -> dict[str, Any]:
    return {
        "name": entry.name,
        "method": entry.method or "",
        "requests": entry.num_requests,
        "failures": entry.num_failures,
        "response_times": list(entry.response_times.items()),
        "total_response_time": entry.total_response_time,
        "min_response_time": entry.min_response_time or 0,
        "max_response_time": entry.max_response_time,
    }


def _listen() -> None:
    import locust

    events: Any = locust.events
    events.init.add_listener(_made)
    events.test_start.add_listener(_begun)
    events.test_stop.add_listener(_ended)
    events.quitting.add_listener(_quitting)


if "locust" in sys.modules:
    _listen()
