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
        doc="A Python file, executed at the start and at every reload. Without this setting ./tricorn.conf.py is read, "
        "and if there is none ./gunicorn.conf.py, from the directory in which the server is started. "
        "In the file itself the name means nothing.",
    )

    wsgi_app = Setting(
        flags=(),
        kind=OptionalText(metavar="APP_MODULE"),
        default=None,
        help="The application: MODULE, MODULE:ATTRIBUTE or MODULE:FACTORY(ARGUMENTS).",
        doc="MODULE may be a file, as in `main.py`. Without an attribute `application` is taken, else `app`, else what "
        "`create_app()` returns. An attribute may be one of another, `main:site.app`. The arguments of a factory "
        "are literals, and need not be given (`factory`). An MCP server (`server:mcp`), or another object with a "
        "method `http_app` or `streamable_http_app`, is served as that method makes it. On the command line it is "
        "the argument without a flag.",
    )

    paste = Setting(
        flags=("--paste", "--paster"),
        kind=ExistingPath("FILE#NAME"),
        default=None,
        help="A PasteDeploy file that describes the application, as production.ini or production.ini#admin.",
        doc="Its section `[app:main]`, or the one that is named after `#`, stands for `wsgi_app`. Where the file "
        "configures logging (`[loggers]`) it is `logconfig`, too. It needs PasteDeploy: `pip install "
        "'tricorn[paste]'`. With `use = egg:tricorn` in `[server:main]` the command `pserve` starts this server with "
        "what else stands there.",
    )

    raw_paste_global_conf = Setting(
        flags=("--paste-global",),
        action=Action.APPEND,
        kind=EnvAssignments(metavar="CONF"),
        default=(),
        rare=True,
        help="A variable of the PasteDeploy file, as KEY=VALUE.",
        doc="What `%(KEY)s` means there. May be given several times.",
    )

    factory = Setting(
        kind=Boolean(),
        default=False,
        own=True,
        help="The application is what MODULE:ATTRIBUTE returns when it is called without arguments.",
        doc="uvicorn's. The same as `MODULE:ATTRIBUTE()`. Without it a function, method or object is a factory if it "
        "can be called without arguments and not as an application; a class is one if its instances are "
        "applications. A function whose parameters all have defaults may be both. It is taken for a factory, unless"
        " the parameters have the names of an interface (`environ`, `start_response`; `scope`, `receive`, `send`), "
        "or `worker_class` is set and calls its applications with as many arguments.",
    )

    env_file: Setting[tuple[str, ...]] = Setting(
        action=Action.APPEND,
        kind=ExistingPaths("FILE"),
        default=(),
        own=True,
        help="A file of NAME=VALUE lines: variables for the application.",
        doc="May be given several times. The form is that of `.env` files: comments, `export`, quotes, `${OTHER}`. A "
        "variable that is there already stays as it is; `raw_env` is stronger. The server's own settings are not read "
        "from it. It is read again at a reload.",
    )

    unavailable = Setting(
        kind=Choice(("refuse", "warn"), metavar="POLICY"),
        default="refuse",
        own=True,
        rare=True,
        help="What becomes of settings of other servers that tricorn does not have: refuse or warn.",
        doc="With `warn` each is left out, and the log says so at every start. What such a setting promises (HTTP/2, "
        "say) is then not there. Settings that are of effect only with others (`dirty_workers`, `uwsgi_allow_ips`) are "
        "never refused.",
    )
