"""The arbiter: binds, starts workers, replaces dead ones, reloads, stops.

`policy` decides (pure), `effects` performs, `loop` joins them, `start` builds it all. `parts` is what control requests
and periodic jobs read. Read policy's package, then loop, effects, process_table, generation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tricorn.arbiter.generations import MakeApplication
    from tricorn.arbiter.hook_api import Server
    from tricorn.config.load import Loaded, Sources


def run(
    sources: Sources,
    loaded: Loaded,
    make_application: MakeApplication | None = None,
    server: Server | None = None,
) -> int:
    """Serves until told to stop. Returns the exit status, and in a forked worker that of the worker."""
    from tricorn.arbiter import start
    from tricorn.log import bounded
    from tricorn.workers.application import Application

    make = make_application or (lambda config: Application(config, sources.application))
    try:
        return start.run(sources, loaded, make, server)
    finally:
        bounded.end()
