"""What is written, and where."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from tricorn.config.lookups import ClassName, Dictionary, OptionalFile
from tricorn.config.setting import Action, Setting
from tricorn.config.validators import Boolean, Choice, OptionalText, Text

SECTION = "Logging"

ACCESSLOG = Setting(
    name="accesslog",
    flags=("--access-logfile",),
    kind=OptionalText(metavar="FILE"),
    default=None,
    section=SECTION,
    help="The Access log file to write to; `-` is stdout.",
    doc="Without it there is no access log.",
)

DISABLE_REDIRECT_ACCESS_TO_SYSLOG = Setting(
    name="disable_redirect_access_to_syslog",
    flags=("--disable-redirect-access-to-syslog",),
    action=Action.SET,
    kind=Boolean(),
    default=False,
    section=SECTION,
    help="Disable redirect access logs to syslog.",
    doc="Accepted for gunicorn's sake: this version does not write to syslog.",
)

ACCESS_LOG_FORMAT = Setting(
    name="access_log_format",
    flags=("--access-logformat",),
    kind=Text(),
    default='%(h)s %(l)s %(u)s %(t)s "%(r)s" %(s)s %(b)s "%(f)s" "%(a)s"',
    core=True,
    section=SECTION,
    help="The access log format.",
    doc="With the atoms of gunicorn: docs/LOGS.md.",
)

ERRORLOG = Setting(
    name="errorlog",
    flags=("--error-logfile", "--log-file"),
    kind=Text(metavar="FILE"),
    default="-",
    section=SECTION,
    help="The Error log file to write to; `-` is stderr.",
    doc="It is opened anew on USR1, for log rotation.",
)

LOGLEVEL = Setting(
    name="loglevel",
    flags=("--log-level",),
    kind=Choice(
        ("debug", "info", "warning", "error", "critical"),
        metavar="LEVEL",
        also=(("warn", "warning"), ("fatal", "critical"), ("trace", "debug"), ("notset", "debug")),
    ),
    default="info",
    section=SECTION,
    help="The granularity of Error log outputs: debug, info, warning, error or critical.",
    doc="`warn`, `fatal`, uvicorn's `trace` and granian's `notset` are understood as well, in any case.",
)

LOG_STREAMS = Setting(
    name="log_streams",
    flags=("--log-streams",),
    kind=Choice(("stderr", "split")),
    default="stderr",
    section=SECTION,
    own=True,
    help="Where an Error log of `-` goes: stderr, or split by level.",
    doc="`split` writes DEBUG and INFO to stdout and the rest to stderr, for platforms that take whatever comes from "
    "stderr for an error.",
)

LOG_FORMAT = Setting(
    name="log_format",
    flags=("--log-format",),
    kind=Choice(("text", "json")),
    default="text",
    core=True,
    section=SECTION,
    own=True,
    help="The format of both logs: text, or json with an object on each line.",
    doc="Text is gunicorn's format. Values are escaped in both.",
)

REQUEST_ID = Setting(
    name="request_id",
    flags=("--request-id",),
    action=Action.SET,
    kind=Boolean(),
    default=False,
    core=True,
    section=SECTION,
    own=True,
    help="Give each request an identifier, and take over the one in X-Request-ID.",
    doc="It is `tricorn.request_id` in the environ, stands in the logs, and is sent back as X-Request-ID.",
)

CAPTURE_OUTPUT = Setting(
    name="capture_output",
    flags=("--capture-output",),
    action=Action.SET,
    kind=Boolean(),
    default=False,
    section=SECTION,
    help="Redirect stdout/stderr to specified file in `errorlog`.",
    doc="What the application prints then stands in the error log.",
)

LOGGER_CLASS = Setting(
    name="logger_class",
    flags=("--logger-class",),
    kind=ClassName(),
    default="tricorn.log.Logger",
    section=SECTION,
    help="The logger you want to use to log events in the server.",
    doc="A class with the methods of gunicorn.glogging.Logger, or its dotted name.",
)

LOGCONFIG = Setting(
    name="logconfig",
    flags=("--log-config",),
    kind=OptionalFile(),
    default=None,
    section=SECTION,
    help="The log config file to use, in the format of logging.config.fileConfig.",
    doc="A file whose name ends with .json, .yaml or .yml holds a dictionary as `logconfig_dict` does (uvicorn's; YAML "
    "needs PyYAML). See `logconfig_dict` for the order.",
)

LOGCONFIG_DICT: Setting[Mapping[str, Any]] = Setting(
    name="logconfig_dict",
    kind=Dictionary(),
    default=MappingProxyType({}),
    section=SECTION,
    help="The log config dictionary to use, in the format of logging.config.dictConfig.",
    doc="Beats `logconfig_json`, which beats `logconfig`.",
)

LOGCONFIG_JSON = Setting(
    name="logconfig_json",
    flags=("--log-config-json",),
    kind=OptionalFile(),
    default=None,
    section=SECTION,
    help="The log config to read from a JSON file, in the format of logging.config.dictConfig.",
    doc="See `logconfig_dict` for the order.",
)

ENABLE_STDIO_INHERITANCE = Setting(
    name="enable_stdio_inheritance",
    flags=("-R", "--enable-stdio-inheritance"),
    action=Action.SET,
    kind=Boolean(),
    default=False,
    section=SECTION,
    help="Enable stdio inheritance: a daemon keeps its standard streams.",
    doc="Of effect only with `daemon`.",
)
