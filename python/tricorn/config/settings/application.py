"""Where configuration comes from, and what is served."""

from __future__ import annotations

from tricorn.config.setting import Setting
from tricorn.config.validators import OptionalText

SECTION = "Config File"

CONFIG = Setting(
    name="config",
    flags=("-c", "--config"),
    kind=OptionalText(metavar="CONFIG"),
    default="./gunicorn.conf.py",
    section=SECTION,
    help="The configuration file: PATH, file:PATH or python:MODULE.",
    doc="A Python file, executed at the start and at every reload. Without this setting ./tricorn.conf.py is read, "
    "and if there is none ./gunicorn.conf.py, from the directory in which the server is started. "
    "In the file itself the name means nothing.",
)

WSGI_APP = Setting(
    name="wsgi_app",
    kind=OptionalText(metavar="APP_MODULE"),
    default=None,
    section=SECTION,
    help="The application: MODULE, MODULE:ATTRIBUTE or MODULE:FACTORY(ARGUMENTS).",
    doc="MODULE may be a file, as in `main.py`. Without an attribute `application` is taken, else `app`, else what "
    "`create_app()` returns. An attribute may be one of another, `main:site.app`. The arguments of a factory are "
    "literals. On the command line it is the argument without a flag.",
)

SETTINGS = (CONFIG, WSGI_APP)
