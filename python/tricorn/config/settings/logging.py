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
        help="Access log file; `-` is stdout.",
        doc="Without it there is no access log.",
    )

    disable_redirect_access_to_syslog = Setting(
        kind=Boolean(),
        default=False,
        rare=True,
        help="Do not send the access log to syslog.",
        doc="Has an effect only with `syslog`: only the error log is sent.",
    )

    access_log_format = Setting(
        flags=("--access-logformat",),
        kind=Text(),
        default='%(h)s %(l)s %(u)s %(t)s "%(r)s" %(s)s %(b)s "%(f)s" "%(a)s"',
        help="Access log format: text with atoms such as %(h)s and %(s)s.",
        doc="The atoms are gunicorn's: docs/reference/log-formats.md. If `log_format` is `pretty` the default is "
        "shorter.",
    )

    errorlog = Setting(
        flags=("--error-logfile", "--log-file"),
        kind=Text(metavar="FILE"),
        default="-",
        help="Error log file; `-` is stderr.",
        doc="Contains the messages of the server and its workers. Reopened on USR1, for log rotation.",
    )

    loglevel = Setting(
        flags=("--log-level",),
        kind=Choice(
            ("debug", "info", "warning", "error", "critical"),
            metavar="LEVEL",
            also=(("warn", "warning"), ("fatal", "critical"), ("trace", "debug"), ("notset", "debug")),
        ),
        default="info",
        help="Minimum level of messages to log: debug, info, warning, error or critical.",
        doc="`warn`, `fatal`, uvicorn's `trace` and granian's `notset` are accepted too. Case-insensitive.",
    )

    log_streams = Setting(
        kind=Choice(("stderr", "split")),
        default="stderr",
        own=True,
        rare=True,
        help="Streams for an error log of `-`: stderr, or split by level.",
        doc="`split` writes DEBUG and INFO to stdout and the rest to stderr, for platforms that treat everything on "
        "stderr as an error.",
    )

    log_format = Setting(
        flags=("--log-format", "--log-style"),
        kind=Choice(("auto", "pretty", "gunicorn", "json"), metavar="STYLE", also=(("text", "gunicorn"),)),
        default="auto",
        own=True,
        help="Format of both logs: pretty, gunicorn, json, or auto (pretty on a terminal, otherwise gunicorn).",
        doc="`pretty` is short, with colours on a terminal (NO_COLOR, FORCE_COLOR and TERM=dumb are respected) and "
        "without the workers' start and exit messages. `gunicorn`, or `text`, is gunicorn's format. `json` has one "
        "object per line. All formats escape values.",
    )

    request_id = Setting(
        kind=Boolean(),
        default=False,
        core=True,
        own=True,
        help="Give each request an ID, or use the one in X-Request-ID.",
        doc="Available as `tricorn.request_id` in the environ, included in the logs, and sent back as X-Request-ID.",
    )

    capture_output = Setting(
        kind=Boolean(),
        default=False,
        help="Redirect the application's stdout and stderr to the error log.",
    )

    logger_class = Setting(
        kind=ClassName(),
        default="tricorn.log.Logger",
        help="Logger class for both logs, as module.Class.",
        doc="A class with the methods of gunicorn.glogging.Logger, or its dotted name.",
    )

    logconfig = Setting(
        flags=("--log-config",),
        kind=ExistingPath("FILE"),
        default=None,
        help="Configuration file for Python's logging: .ini for fileConfig, .json or .yaml for dictConfig.",
        doc="A file ending in .json, .yaml or .yml contains a dictionary, like `logconfig_dict` (as in uvicorn; YAML "
        "requires PyYAML). For the order of precedence see `logconfig_dict`.",
    )

    logconfig_dict: Setting[Mapping[str, Any]] = Setting(
        flags=(),
        kind=Dictionary(),
        default=MappingProxyType({}),
        help="A dictionary for Python's logging (dictConfig).",
        doc="Takes precedence over `logconfig_json`, which takes precedence over `logconfig`.",
    )

    logconfig_json = Setting(
        flags=("--log-config-json",),
        kind=ExistingPath("FILE"),
        default=None,
        part_of=fixed("logconfig", None),
        help="A JSON file for Python's logging (dictConfig).",
        doc="For the order of precedence see `logconfig_dict`.",
    )

    enable_stdio_inheritance = Setting(
        flags=("-R", "--enable-stdio-inheritance"),
        kind=Boolean(),
        default=False,
        rare=True,
        help="Keep the standard streams of a daemon open.",
        doc="Has an effect only with `daemon`.",
    )
