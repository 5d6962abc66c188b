"""`tricorn [OPTIONS] [APP_MODULE]`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from tricorn import __version__
from tricorn.cli.pipes import until_reader_leaves

if TYPE_CHECKING:
    from tricorn.config.load import Sources

EXEC_HELP = """\
usage: tricorn exec COMMAND [ARGUMENT ...]

Runs a command in whose processes gunicorn is tricorn: a program that starts gunicorn itself, or a script that calls it.

  tricorn exec python serve.py
  tricorn exec sh start.sh

The command replaces this process. Its arguments, -h and --help among them, are its own.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the server and returns the exit status: of the arbiter, and in a forked worker of the worker."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words in (["--version"], ["-v"]):  # which needs none of the settings
        with until_reader_leaves():
            print(f"tricorn (version {__version__})")
        return 0
    import tricorn.unpatched  # noqa: F401  (first of all: a configuration file may patch)

    command = COMMANDS.get(words[0]) if words else None
    if command is not None and not _is_module(words[0]):  # an application of that name is an application
        with until_reader_leaves():
            return command(words[1:])
    from tricorn.compat.assigned import FileSources

    return _end(serve(FileSources.here(words)))


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
    if command[:1] in (["-h"], ["--help"]):
        print(EXEC_HELP, end="")
        return 0
    from tricorn.compat.execute import execute
    from tricorn.errors import ConfigError

    try:
        execute(command)
    except ConfigError as error:
        return error.report()


def _main_of(module: str) -> Callable[[Sequence[str]], int]:
    """Returns the `main` of a module, which is imported when it is called."""

    def run(words: Sequence[str]) -> int:
        status: int = import_module(module).main(words)
        return status

    return run


COMMANDS: dict[str, Callable[[Sequence[str]], int]] = {
    "bench": _bench,
    "ctl": _main_of("tricorn.cli.ctl_command"),
    "dev-cert": _main_of("tricorn.cli.dev_cert_command"),
    "doctor": _main_of("tricorn.cli.doctor_command"),
    "exec": _execute,
    "init": _main_of("tricorn.cli.init.command"),
    "load": _load,
    "top": _main_of("tricorn.cli.top_command"),
}
"""Commands by the first word of the command line."""


def _end(status: int) -> int:
    """Ends the process of a server that has served; its threads are not waited for without a limit."""
    from tricorn.workers import ending

    ending.end_server(status)
    return status


def serve(sources: Sources) -> int:
    """The same, of what `sources` say."""
    from tricorn import compat
    from tricorn.errors import TricornError

    compat.install()
    try:
        with until_reader_leaves():  # of --help, for one
            loaded = sources.load()
        config = loaded.config
        if config.check_config or config.print_config:
            from tricorn.cli import inspection

            with until_reader_leaves():
                return inspection.run(loaded)
        from tricorn import arbiter

        return arbiter.run(sources, loaded)
    except TricornError as error:
        return error.report()
    except KeyboardInterrupt:
        return 130  # 128 + SIGINT: stopped before the arbiter listened to signals
