"""`flask tricorn`: the application of FLASK_APP on tricorn.

The command becomes `tricorn` (exec). `flask` need not have loaded the application, and workers load it after the fork.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import click
from flask.cli import NoAppException, ScriptInfo, pass_script_info
from flask.helpers import get_debug_flag

from tricorn.contrib.command import THREADS, become_server
from tricorn.errors import AppImportError

SWITCHES: dict[str, tuple[str, ...]] = {
    "--with-threads": ("--threads", str(THREADS)),
    "--without-threads": ("--threads", "1"),
}
"""Flags of `flask run` without a value, as tricorn has them; `--debug` and `--debugger` choose the application."""
VALUES = {
    "-h": "--host",
    "-p": "--port",
    "--cert": "--certfile",
    "--key": "--keyfile",
    "--extra-files": "--reload-extra-file",
    "--exclude-patterns": "--reload-exclude",
}
"""Flags of `flask run` with a value."""
PATHS = ("--extra-files", "--exclude-patterns")
"""Their value is a list (`os.pathsep`)."""
CHOICES = ("--debug", "--no-debug", "--debugger", "--no-debugger")
ADDRESSES = ("-b", "--bind", "--uds", "--fd")


@click.command(
    "tricorn",
    short_help="Run the application on tricorn.",
    context_settings={"ignore_unknown_options": True},
)
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
@pass_script_info
def command(info: ScriptInfo, options: tuple[str, ...]) -> None:
    """Run the application on tricorn.

    OPTIONS are those of `tricorn --help` and of `flask run`: --debug, --host, --port, --reload, --debugger,
    --with-threads, --cert, --key, --extra-files, --exclude-patterns.
    With --debug, before or after the word tricorn, the server reloads code and shows Werkzeug's debugger.
    """
    if info.create_app is not None and info.app_import_path is None:
        raise click.UsageError("tricorn loads the application by name; set it, as in `--app module:create_app`.")
    if info.app_import_path is not None:
        os.environ["FLASK_APP"] = info.app_import_path
    debug = _last(options, "--debug", "--no-debug")
    if debug is not None:
        os.environ["FLASK_DEBUG"] = "1" if debug else "0"  # as `flask run --debug`; workers inherit it
    become_server(
        _words(options, debug=get_debug_flag()), serves=os.environ.get("FLASK_APP") or "the Flask application"
    )


def _words(options: Sequence[str], *, debug: bool) -> Iterator[str]:
    """The command line of tricorn; of two flags the last one counts."""
    if not any(option.partition("=")[0] in ADDRESSES or option.startswith("-b") for option in options):
        yield from ("--host", "127.0.0.1", "--port", "5000")
    yield from ("--threads", str(THREADS))
    if debug:
        yield "--reload"
    yield from _translated(options)
    debugger = _last(options, "--debugger", "--no-debugger")
    shows = debug if debugger is None else debugger
    yield from ("--factory", f"{__name__}:{'make_with_debugger' if shows else 'make'}")


def _translated(options: Sequence[str]) -> Iterator[str]:
    """The options, with the flags of `flask run` as tricorn has them."""
    rest = iter(options)
    for option in rest:
        flag, equals, value = _split(option)
        if flag in CHOICES and not equals:
            continue
        if flag in SWITCHES and not equals:
            yield from SWITCHES[flag]
        elif flag in VALUES:
            if not equals and (value := next(rest, "")) == "":
                raise click.UsageError(f"Option {flag!r} requires an argument.")
            if flag == "--cert" and value == "adhoc":
                raise click.UsageError(
                    "Ad-hoc certificates are not supported. Create one for --cert and --key with `tricorn dev-cert`."
                )
            for each in value.split(os.pathsep) if flag in PATHS else (value,):
                yield from (VALUES[flag], each)
        else:
            yield option


def _split(option: str) -> tuple[str, str, str]:
    """A flag and its value: `--port=5001`, or `-p5001`."""
    if option[:2] in VALUES and len(option) > 2:
        return option[:2], "=", option[2:].removeprefix("=")
    return option.partition("=")


def _last(options: Sequence[str], on: str, off: str) -> bool | None:
    """Which of two opposite flags was given last; None: neither."""
    given = [option for option in options if option in (on, off)]
    return given[-1] == on if given else None


def make() -> Any:
    """Loads the application of FLASK_APP, or the one that `flask` finds."""
    try:
        return ScriptInfo(os.environ.get("FLASK_APP")).load_app()
    except NoAppException as error:
        raise AppImportError(error.format_message()) from error


def make_with_debugger() -> Any:
    """Loads the application with Werkzeug's debugger, which needs a single worker: it keeps frames in its process."""
    from werkzeug.debug import DebuggedApplication

    return DebuggedApplication(make(), evalex=True)
