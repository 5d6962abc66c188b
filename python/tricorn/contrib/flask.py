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

OF_RUN = {
    "-h": ("--host",),
    "-p": ("--port",),
    "--with-threads": ("--threads", str(THREADS)),
    "--without-threads": ("--threads", "1"),
    "--debugger": (),
    "--no-debugger": (),
}
"""Flags of `flask run`, as tricorn has them."""
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

    OPTIONS are those of `tricorn --help`, and --host, --port, --with-threads, --debugger and --reload of `flask run`.
    With --debug the server reloads code and shows Werkzeug's debugger.
    """
    if info.create_app is not None and info.app_import_path is None:
        raise click.UsageError("tricorn loads the application by its name: give it, as in `--app module:create_app`.")
    if info.app_import_path is not None:
        os.environ["FLASK_APP"] = info.app_import_path
    become_server(_words(options, debug=get_debug_flag()))


def _words(options: Sequence[str], *, debug: bool) -> Iterator[str]:
    """The command line of tricorn; of two flags the last one counts."""
    if not any(option.partition("=")[0] in ADDRESSES or option.startswith("-b") for option in options):
        yield from ("--host", "127.0.0.1", "--port", "5000")
    yield from ("--threads", str(THREADS))
    if debug:
        yield "--reload"
    for option in options:
        yield from OF_RUN.get(option, (option,))
    asked = [option for option in options if option in ("--debugger", "--no-debugger")]
    debugger = asked[-1] == "--debugger" if asked else debug
    yield from ("--factory", f"{__name__}:{'make_with_debugger' if debugger else 'make'}")


def make() -> Any:
    """Loads the application that FLASK_APP names, or that `flask` finds."""
    try:
        return ScriptInfo(os.environ.get("FLASK_APP")).load_app()
    except NoAppException as error:
        raise AppImportError(error.format_message()) from error


def make_with_debugger() -> Any:
    """The same, with Werkzeug's page for exceptions. Its frames are in one process, so one worker is to serve."""
    from werkzeug.debug import DebuggedApplication

    return DebuggedApplication(make(), evalex=True)
