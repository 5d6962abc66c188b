"""Settings of the logs."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from tricorn.config.lookups import ClassName, Dictionary, ExistingPath
from tricorn.config.setting import Section, Setting, fixed
from tricorn.config.validators import Boolean, Choice, OptionalText, Text


class Logging(Section):
    SECTION = "Logging"

    accesslog = Setting(
        flags=("--access-logfile",),
        kind=OptionalText(metavar="FILE"),
        default=None,
        help="The file for a line about each request; `-` is stdout.",
        doc="Without it there is no access log.",
    )

    disable_redirect_access_to_syslog = Setting(
        kind=Boolean(),
        default=False,
        rare=True,
        help="Send only the error log to syslog.",
        doc="Of effect only with `syslog`: the error log goes there, lines of the access log do not.",
    )

    access_log_format = Setting(
        flags=("--access-logformat",),
        kind=Text(),
        default='%(h)s %(l)s %(u)s %(t)s "%(r)s" %(s)s %(b)s "%(f)s" "%(a)s"',
        help="The line about a request: text with atoms such as %(h)s and %(s)s.",
        doc="With the atoms of gunicorn: docs/reference/log-formats.md. Where `log_format` is `pretty` the default is "
        "a shorter one.",
    )

    errorlog = Setting(
        flags=("--error-logfile", "--log-file"),
        kind=Text(metavar="FILE"),
        default="-",
        help="The file for what the server and the application say; `-` is stderr.",
        doc="It is opened anew on USR1, for log rotation.",
    )

    loglevel = Setting(
        flags=("--log-level",),
        kind=Choice(
            ("debug", "info", "warning", "error", "critical"),
            metavar="LEVEL",
            also=(("warn", "warning"), ("fatal", "critical"), ("trace", "debug"), ("notset", "debug")),
        ),
        default="info",
        help="What is logged: debug, info, warning, error or critical, and what is worse.",
        doc="`warn`, `fatal`, uvicorn's `trace` and granian's `notset` are understood as well, in any case.",
    )

    log_streams = Setting(
        kind=Choice(("stderr", "split")),
        default="stderr",
        own=True,
        rare=True,
        help="Where an Error log of `-` goes: stderr, or split by level.",
        doc="`split` writes DEBUG and INFO to stdout and the rest to stderr, for platforms that take whatever comes "
        "from stderr for an error.",
    )

    log_format = Setting(
        flags=("--log-format", "--log-style"),
        kind=Choice(("auto", "pretty", "gunicorn", "json"), metavar="STYLE", also=(("text", "gunicorn"),)),
        default="auto",
        own=True,
        help="How lines of both logs look: pretty, gunicorn, json, or auto: pretty on a terminal, else gunicorn.",
        doc="`pretty` is short, with colours on a terminal (NO_COLOR, FORCE_COLOR and TERM=dumb are respected) and "
        "without what each worker says of its start and end; `gunicorn`, or `text`, is gunicorn's format; `json` has "
        "an object on each line. Values are escaped in all of them.",
    )

    request_id = Setting(
        kind=Boolean(),
        default=False,
        core=True,
        own=True,
        help="Give each request an identifier, and take over the one in X-Request-ID.",
        doc="It is `tricorn.request_id` in the environ, stands in the logs, and is sent back as X-Request-ID.",
    )

    capture_output = Setting(
        kind=Boolean(),
        default=False,
        help="Put what the application prints into the error log.",
        doc="What the application prints then stands in the error log.",
    )

    logger_class = Setting(
        kind=ClassName(),
        default="tricorn.log.Logger",
        help="The class that makes both logs, as module.Class.",
        doc="A class with the methods of gunicorn.glogging.Logger, or its dotted name.",
    )

    logconfig = Setting(
        flags=("--log-config",),
        kind=ExistingPath("FILE"),
        default=None,
        help="A file for Python's logging: .ini as for fileConfig, .json or .yaml as for dictConfig.",
        doc="A file whose name ends with .json, .yaml or .yml holds a dictionary as `logconfig_dict` does (uvicorn's; "
        "YAML needs PyYAML). See `logconfig_dict` for the order.",
    )

    logconfig_dict: Setting[Mapping[str, Any]] = Setting(
        flags=(),
        kind=Dictionary(),
        default=MappingProxyType({}),
        help="A dictionary for Python's logging (dictConfig).",
        doc="Beats `logconfig_json`, which beats `logconfig`.",
    )

    logconfig_json = Setting(
        flags=("--log-config-json",),
        kind=ExistingPath("FILE"),
        default=None,
        part_of=fixed("logconfig", None),
        help="A JSON file for Python's logging (dictConfig).",
        doc="See `logconfig_dict` for the order.",
    )

    enable_stdio_inheritance = Setting(
        flags=("-R", "--enable-stdio-inheritance"),
        kind=Boolean(),
        default=False,
        rare=True,
        help="Leave a daemon its standard streams.",
        doc="Of effect only with `daemon`.",
    )
