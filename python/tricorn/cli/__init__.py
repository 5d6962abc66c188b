"""`tricorn [OPTIONS] [APP_MODULE]`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tricorn.cli.pipes import until_reader_leaves
from tricorn.version import __version__

if TYPE_CHECKING:
    from tricorn.config.load import Sources

Command = Callable[[Sequence[str]], int]

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

    if words and (status := _run_command(words[0], words[1:])) is not None:
        return status
    from tricorn.compat.assigned import FileSources

    return _end(serve(FileSources.here(words)))


def _run_command(name: str, words: Sequence[str]) -> int | None:
    """Returns the exit status; None if this is no command, but an application or a flag."""
    # `module:attribute` and a flag are none, and an application of that name is an application.
    if name.startswith("-") or not name.replace("-", "_").isidentifier() or _is_module(name):
        return None
    from tricorn import extensions

    try:
        with until_reader_leaves():
            command = COMMANDS.get(name) or _of_extension(name)
            return None if command is None else command(words)
    except extensions.NotInstalled as error:
        sys.stderr.write(f"tricorn: error: {error}\n")
        return 2  # as of argparse
    except ImportError:
        if not lacks_core():
            raise
        from tricorn.cli import portable

        return portable.refuse(f"tricorn {name}")


def _of_extension(name: str) -> Command | None:
    from tricorn import extensions

    try:
        command: Command = extensions.load(extensions.COMMANDS, name, f"tricorn {name}")
    except LookupError:
        return None
    return command


def _is_module(name: str) -> bool:
    """A file or a package; a folder that merely has the name is none."""
    from importlib.machinery import PathFinder

    spec = PathFinder.find_spec(name, ["", *sys.path])
    return spec is not None and spec.origin is not None


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


def _control(words: Sequence[str]) -> int:
    from tricorn.cli import ctl_command

    return ctl_command.main(words)


COMMANDS: dict[str, Command] = {"ctl": _control, "exec": _execute}
"""The server's own, by the first word of the command line."""


def lacks_core() -> bool:
    """Returns whether this installation has no native core, as on systems other than Linux (`portable`)."""
    from importlib.util import find_spec

    return find_spec("tricorn._core") is None


def _end(status: int) -> int:
    """Ends the process of a server that has served; its threads are not waited for without a limit."""
    from tricorn.workers import ending

    ending.end_server(status)
    return status


def serve(sources: Sources) -> int:
    """Runs the server with the configuration of `sources`."""
    from tricorn import compat
    from tricorn.errors import TricornError

    compat.install()
    try:
        with until_reader_leaves():  # of --help, for one
            loaded = sources.load()
        if lacks_core():
            from tricorn.cli import portable

            return portable.run(sources, loaded)
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
