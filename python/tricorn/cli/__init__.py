"""`tricorn [OPTIONS] [APP_MODULE]`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tricorn import __version__

if TYPE_CHECKING:
    from tricorn.config.load import Sources

EXEC, LOAD, BENCH, CTL, TOP, DOCTOR, INIT = "exec", "load", "bench", "ctl", "top", "doctor", "init"
DEV_CERT = "dev-cert"  # no module has such a name
"""The first argument of `tricorn exec COMMAND …` and the others; but an application of that name is an application."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the server and returns the exit status: of the arbiter, and in a forked worker of the worker."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words in (["--version"], ["-v"]):  # which needs none of the settings
        print(f"tricorn (version {__version__})")
        return 0
    if words[:1] == [BENCH] and not _is_module(BENCH):
        return _bench(words[1:])
    if words[:1] == [DEV_CERT]:
        from tricorn.cli import dev_cert_command

        return dev_cert_command.main(words[1:])
    if words[:1] == [DOCTOR] and not _is_module(DOCTOR):
        from tricorn.cli import doctor_command

        return doctor_command.main(words[1:])
    import tricorn.unpatched  # noqa: F401  (first of all: a configuration file may patch)

    if words[:1] == [LOAD] and not _is_module(LOAD):
        return _load(words[1:])
    if words[:1] == [CTL] and not _is_module(CTL):
        from tricorn.cli import ctl_command

        return ctl_command.main(words[1:])
    if words[:1] == [TOP] and not _is_module(TOP):
        from tricorn.cli import top_command

        return top_command.main(words[1:])
    if words[:1] == [INIT] and not _is_module(INIT):
        from tricorn.cli.init import command

        return command.main(words[1:])
    if words[:1] == [EXEC] and not _is_module(EXEC):
        return _execute(words[1:])
    from tricorn.compat.assigned import FileSources

    return serve(FileSources.here(words))


def _is_module(name: str) -> bool:
    """A file or a package; a folder that merely has the name is none."""
    from importlib.machinery import PathFinder

    spec = PathFinder.find_spec(name, ["", *sys.path])
    return spec is not None and spec.origin is not None


def _load(words: Sequence[str]) -> int:
    try:
        from tricorn.cli import load_command

        return load_command.main(words)
    except KeyboardInterrupt:  # before the first request, or while the report was written
        sys.stderr.write("\nInterrupted: there is no report.\n")
        return 130


def _bench(words: Sequence[str]) -> int:
    try:
        from tricorn.bench import command  # what the server does not need is imported here only

        return command.main(words)
    except KeyboardInterrupt:  # before it listened to signals
        sys.stderr.write("\nStopped by SIGINT: nothing had been started.\n")
        return 130


def _execute(command: Sequence[str]) -> int:
    from tricorn.compat.execute import execute
    from tricorn.errors import ConfigError

    try:
        execute(command)
    except ConfigError as error:
        return error.report()


def serve(sources: Sources) -> int:
    """The same, of what `sources` say."""
    from tricorn import compat
    from tricorn.errors import TricornError

    compat.install()
    try:
        loaded = sources.load()
        config = loaded.config
        if config.check_config or config.print_config:
            from tricorn.cli import inspection

            return inspection.run(loaded)
        from tricorn import arbiter

        return arbiter.run(sources, loaded)
    except TricornError as error:
        return error.report()
    except KeyboardInterrupt:
        return 130  # 128 + SIGINT: stopped before the arbiter listened to signals
