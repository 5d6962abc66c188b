"""`tricorn [OPTIONS] [APP_MODULE]`."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

from tricorn.config.config import Config
from tricorn.errors import ConfigError, ExitCode, TricornError


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the server and returns the exit status: of the arbiter, and in a forked worker of the worker."""
    try:
        config, warnings = configure(sys.argv[1:] if argv is None else argv, os.environ)
        if config.check_config:
            return check(config)
        from tricorn import arbiter

        return arbiter.run(config, warnings)
    except TricornError as error:
        # gunicorn's shape: an empty line, then the reason.
        print(f"\nError: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130  # 128 + SIGINT: stopped before the arbiter listened to signals


def configure(argv: Sequence[str], environ: Mapping[str, str]) -> tuple[Config, tuple[str, ...]]:
    """The configuration and what there is to warn about. Touches nothing but its arguments."""
    from tricorn import workers
    from tricorn.arbiter import sockets
    from tricorn.cli import parser
    from tricorn.config import resolve

    command_line = parser.read_arguments(argv)
    environment = resolve.read_environment(environ)
    config = resolve.resolve([environment, *parser.read_environment_arguments(environ), command_line])
    workers.choose(config.worker_class, config.threads)
    for address in config.bind:
        sockets.parse_address(address)
    if config.wsgi_app is None:
        raise ConfigError("No application module specified.")
    return config, environment.warnings


def check(config: Config) -> int:
    """`--check-config`: everything that can be known without serving."""
    import traceback

    from tricorn.arbiter import environment
    from tricorn.gateway import app_loader

    environment.enter(config)
    try:
        app_loader.load(config.wsgi_app or "")
    except Exception:
        print("\nError while loading the application:\n", file=sys.stderr)
        traceback.print_exc()
        return ExitCode.CONFIG
    return ExitCode.OK
