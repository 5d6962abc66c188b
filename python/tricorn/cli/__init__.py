"""`tricorn [OPTIONS] [APP_MODULE]`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import tricorn.unpatched  # noqa: F401  (first of all: a configuration file may patch)
from tricorn.config.load import Sources, load
from tricorn.errors import TricornError


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the server and returns the exit status: of the arbiter, and in a forked worker of the worker."""
    try:
        sources = Sources.here(sys.argv[1:] if argv is None else argv)
        loaded = load(sources)
        config = loaded.config
        if config.check_config or config.print_config:
            from tricorn.cli import inspection

            return inspection.run(loaded)
        from tricorn import arbiter

        return arbiter.run(sources, loaded)
    except TricornError as error:
        # gunicorn's shape: an empty line, then the reason.
        print(f"\nError: {error}", file=sys.stderr)
        print(error.details, end="", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130  # 128 + SIGINT: stopped before the arbiter listened to signals
