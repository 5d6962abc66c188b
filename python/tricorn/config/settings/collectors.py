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
        help="Address of the syslog server: udp://HOST:PORT, tcp://HOST:PORT or unix://PATH.",
        doc="`udp://HOST:PORT`, `tcp://HOST:PORT` (default port 514) or `unix://PATH`. On a Unix socket datagrams are "
        "tried first, then a stream; append `#dgram` or `#stream` to choose. Has an effect only with `syslog`.",
    )

    syslog = Setting(
        flags=("--log-syslog",),
        kind=Boolean(),
        default=False,
        help="Send both logs to syslog too.",
        doc="The error log, and the access log (`disable_redirect_access_to_syslog`). No request waits for the "
        "collector: docs/reference/log-formats.md.",
    )

    syslog_prefix = Setting(
        flags=("--log-syslog-prefix",),
        kind=OptionalText(metavar="SYSLOG_PREFIX"),
        default=None,
        rare=True,
        help="Program name in syslog messages: gunicorn.PREFIX.error and gunicorn.PREFIX.access.",
        doc="The default prefix is `proc_name`.",
    )

    syslog_facility = Setting(
        flags=("--log-syslog-facility",),
        kind=Choice(tuple(FACILITIES), metavar="SYSLOG_FACILITY"),
        default="user",
        rare=True,
        help="Syslog facility, such as user or local3.",
    )

    syslog_format = Setting(
        kind=Choice(("gunicorn", "rfc5424")),
        default="gunicorn",
        own=True,
        rare=True,
        help="Syslog message format: gunicorn, or rfc5424 with time, host and length.",
        doc="gunicorn's format ends with NUL. With `rfc5424` each message on a stream starts with its length (RFC "
        "6587), which rsyslog and syslog-ng understand.",
    )

    statsd_host = Setting(
        kind=StatsdHost(),
        default=None,
        help="Address of a StatsD server for request metrics.",
        doc="`HOST`, `HOST:PORT` (default port 8125) or `unix://PATH`. The metrics are gunicorn's, for every worker "
        "class, and do not depend on the access log: [statsd](../guides/statsd.md).",
    )

    dogstatsd_tags = Setting(
        kind=Text(metavar="DOGSTATSD_TAGS"),
        default="",
        help="Comma-separated tags for Datadog metrics.",
        doc="`tag1:value1,tag2:value2`",
    )

    statsd_prefix = Setting(
        kind=Text(metavar="STATSD_PREFIX"),
        default="",
        help="Prefix of StatsD metric names; a dot is added.",
        doc="A prefix of one character gets no dot, as with gunicorn.",
    )

    statsd_datagram = Setting(
        kind=OrAuto(Bytes(max=65_507)),
        default="auto",
        own=True,
        rare=True,
        help="Maximum bytes of a StatsD datagram, which combines several metrics; 0 sends each metric at once.",
        doc="`auto` is 1432, which fits an Ethernet packet, or 8192 for a Unix socket. A datagram is sent when it is "
        "full, or after 100 ms.",
    )

    statsd_extended = Setting(
        kind=Boolean(),
        default=False,
        own=True,
        rare=True,
        help="Send metrics that gunicorn does not have: queue.duration, requests.running, "
        "requests.waiting, memory.pss.",
    )

    enable_backlog_metric = Setting(
        kind=Boolean(),
        default=False,
        rare=True,
        help="Send the length of the listen backlog once a second, as a histogram.",
        doc="Has an effect only with `statsd_host`, and on TCP listeners.",
    )
