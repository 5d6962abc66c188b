"""To whom else logs and metrics are sent: syslog and statsd."""

from __future__ import annotations

import sys

from tricorn.config.collectors import StatsdHost, SyslogAddress
from tricorn.config.setting import Section, Setting
from tricorn.config.validators import Boolean, Bytes, Choice, OptionalText, OrAuto, Text

FACILITIES = {
    "auth": 4,
    "authpriv": 10,
    "cron": 9,
    "daemon": 3,
    "ftp": 11,
    "kern": 0,
    "lpr": 6,
    "mail": 2,
    "news": 7,
    "security": 4,
    "syslog": 5,
    "user": 1,
    "uucp": 8,
    **{f"local{number}": 16 + number for number in range(8)},
}
"""Numbers of RFC 5424, table 1, by gunicorn's names."""


class Collectors(Section):
    SECTION = "Syslog and statsd"

    syslog_addr = Setting(
        flags=("--log-syslog-to",),
        kind=SyslogAddress(),
        default="unix:///var/run/syslog" if sys.platform == "darwin" else "udp://localhost:514",
        default_shown="udp://localhost:514",
        help="Where syslog listens: udp://HOST:PORT, tcp://HOST:PORT or unix://PATH.",
        doc="`udp://HOST:PORT`, `tcp://HOST:PORT` (default port 514) or `unix://PATH`, where datagrams are tried and "
        "then a stream; `#dgram` or `#stream` behind the path says which. Of effect only with `syslog`.",
    )

    syslog = Setting(
        flags=("--log-syslog",),
        kind=Boolean(),
        default=False,
        help="Send both logs to syslog as well.",
        doc="The error log, and a line for each request (`disable_redirect_access_to_syslog`). No request waits for "
        "the collector: docs/reference/log-formats.md.",
    )

    syslog_prefix = Setting(
        flags=("--log-syslog-prefix",),
        kind=OptionalText(metavar="SYSLOG_PREFIX"),
        default=None,
        rare=True,
        help="The program name in messages to syslog is gunicorn.PREFIX.error and gunicorn.PREFIX.access.",
        doc="Without it the prefix is `proc_name`.",
    )

    syslog_facility = Setting(
        flags=("--log-syslog-facility",),
        kind=Choice(tuple(FACILITIES), metavar="SYSLOG_FACILITY"),
        default="user",
        rare=True,
        help="The facility of messages to syslog, such as user or local3.",
    )

    syslog_format = Setting(
        kind=Choice(("gunicorn", "rfc5424")),
        default="gunicorn",
        own=True,
        rare=True,
        help="The format of messages to syslog: gunicorn's, or rfc5424 with time, host and length.",
        doc="gunicorn's ends with NUL. With `rfc5424` a message on a stream begins with its length (RFC 6587), which "
        "rsyslog and syslog-ng understand.",
    )

    statsd_host = Setting(
        kind=StatsdHost(),
        default=None,
        help="The address of a StatsD server for metrics of requests.",
        doc="`HOST`, `HOST:PORT` (default port 8125) or `unix://PATH`. The metrics are gunicorn's, for every worker "
        "class, and do not depend on the access log: docs/guides/operations.md.",
    )

    dogstatsd_tags = Setting(
        kind=Text(metavar="DOGSTATSD_TAGS"),
        default="",
        help="Tags of metrics for Datadog, with commas between them.",
        doc="`tag1:value1,tag2:value2`",
    )

    statsd_prefix = Setting(
        kind=Text(metavar="STATSD_PREFIX"),
        default="",
        help="What names of StatsD metrics begin with; a point is added.",
        doc="One of a single character gets no point, as with gunicorn.",
    )

    statsd_datagram = Setting(
        kind=OrAuto(Bytes(max=65_507)),
        default="auto",
        own=True,
        rare=True,
        help="Most bytes of a datagram in which metrics of requests are sent together; 0 sends each alone, at once.",
        doc="`auto` is 1432 (what passes an Ethernet network in one piece), and 8192 for a unix socket. A datagram is "
        "sent when it is full, or after 100 ms.",
    )

    statsd_extended = Setting(
        kind=Boolean(),
        default=False,
        own=True,
        rare=True,
        help="Send metrics that gunicorn does not have: queue.duration, requests.running, requests.waiting.",
    )

    enable_backlog_metric = Setting(
        kind=Boolean(),
        default=False,
        rare=True,
        help="Send the length of the listeners' backlog as a histogram, once a second.",
        doc="Of effect only with `statsd_host`, and on TCP listeners.",
    )
