"""What is written, and where."""

from __future__ import annotations

from tricorn.config.setting import Setting
from tricorn.config.validators import Choice, OptionalText, Text

SECTION = "Logging"

ACCESSLOG = Setting(
    name="accesslog",
    flags=("--access-logfile",),
    kind=OptionalText(metavar="FILE"),
    default=None,
    section=SECTION,
    help="The Access log file to write to; `-` is stdout.",
)

ACCESS_LOG_FORMAT = Setting(
    name="access_log_format",
    flags=("--access-logformat",),
    kind=Text(),
    default='%(h)s %(l)s %(u)s %(t)s "%(r)s" %(s)s %(b)s "%(f)s" "%(a)s"',
    section=SECTION,
    help="The access log format.",
)

ERRORLOG = Setting(
    name="errorlog",
    flags=("--error-logfile", "--log-file"),
    kind=Text(metavar="FILE"),
    default="-",
    section=SECTION,
    help="The Error log file to write to; `-` is stderr.",
)

LOGLEVEL = Setting(
    name="loglevel",
    flags=("--log-level",),
    kind=Choice(("debug", "info", "warning", "error", "critical"), metavar="LEVEL"),
    default="info",
    section=SECTION,
    help="The granularity of Error log outputs: debug, info, warning, error or critical.",
)

SETTINGS = (ACCESSLOG, ACCESS_LOG_FORMAT, ERRORLOG, LOGLEVEL)
