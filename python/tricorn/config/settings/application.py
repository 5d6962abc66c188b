"""Settings of the application, and of the sources of configuration."""

from __future__ import annotations

from tricorn.config.lookups import ExistingPath, ExistingPaths
from tricorn.config.setting import Action, Section, Setting
from tricorn.config.validators import Boolean, Choice, EnvAssignments, OptionalText


class Application(Section):
    SECTION = "Config File"

    config = Setting(
        flags=("-c", "--config"),
        kind=OptionalText(metavar="CONFIG"),
        default="./gunicorn.conf.py",
        default_shown="./{tricorn,gunicorn}.conf.py",
        help="The configuration file: PATH, file:PATH or python:MODULE.",
        doc="A Python file, executed at start and at every reload. If you do not set it, tricorn reads "
        "./tricorn.conf.py, or else ./gunicorn.conf.py, from the directory in which the server starts. Setting it "
        "inside a configuration file has no effect.",
    )

    wsgi_app = Setting(
        flags=(),
        kind=OptionalText(metavar="APP_MODULE"),
        default=None,
        help="The application: MODULE, MODULE:ATTRIBUTE or MODULE:FACTORY(ARGUMENTS).",
        doc="MODULE may be a file, as in `main.py`. If you omit the attribute, tricorn looks for `application`, then "
        "`app`, then calls `create_app()`. Dotted attributes work: `main:site.app`. Factory arguments are literals, "
        "and optional (`factory`). For an MCP server (`server:mcp`), or another object with an `http_app` or "
        "`streamable_http_app` method, tricorn calls that method. On the command line it is the argument without a "
        "flag.",
    )

    paste = Setting(
        flags=("--paste", "--paster"),
        kind=ExistingPath("FILE#NAME"),
        default=None,
        help="A PasteDeploy file that describes the application, such as production.ini or production.ini#admin.",
        doc="The section `[app:main]`, or the one named after `#`, replaces `wsgi_app`. If the file configures "
        "logging (`[loggers]`), it is used as `logconfig` too. Requires PasteDeploy: `pip install 'tricorn[paste]'`. "
        "With `use = egg:tricorn` in `[server:main]`, the command `pserve` starts this server with the other options "
        "of that section.",
    )

    raw_paste_global_conf = Setting(
        flags=("--paste-global",),
        action=Action.APPEND,
        kind=EnvAssignments(metavar="CONF"),
        default=(),
        rare=True,
        help="A variable for the PasteDeploy file, KEY=VALUE.",
        doc="The value of `%(KEY)s` in the file. May be repeated.",
    )

    factory = Setting(
        kind=Boolean(),
        default=False,
        own=True,
        help="Call MODULE:ATTRIBUTE without arguments to get the application.",
        doc="Same as `MODULE:ATTRIBUTE()`, and as in uvicorn. Without this setting tricorn detects factories: a "
        "function, method or object that accepts no arguments and does not look like an application, or a class whose "
        "instances are applications. If all parameters of a function have defaults it could be either. It is taken "
        "for a factory, unless the parameters have the names of an interface (`environ`, `start_response`; `scope`, "
        "`receive`, `send`), or `worker_class` is set and calls its applications with as many arguments.",
    )

    env_file: Setting[tuple[str, ...]] = Setting(
        action=Action.APPEND,
        kind=ExistingPaths("FILE"),
        default=(),
        own=True,
        help="A file of NAME=VALUE lines with environment variables for the application.",
        doc="May be repeated. The format is that of `.env` files: comments, `export`, quotes, `${OTHER}`. Existing "
        "variables are not overwritten, and `raw_env` takes precedence. The server's own settings are not read from "
        "it. The file is read again at a reload.",
    )

    unavailable = Setting(
        kind=Choice(("refuse", "warn"), metavar="POLICY"),
        default="refuse",
        own=True,
        rare=True,
        help="How to handle settings of other servers that tricorn does not support: refuse or warn.",
        doc="`refuse` stops the start with an error message. `warn` ignores such settings and logs a warning at every "
        "start, so what they promise (workers for other tasks, for example) is missing. Settings that have an effect "
        "only together with others (`dirty_workers`, which needs `dirty_apps`) are never refused.",
    )
