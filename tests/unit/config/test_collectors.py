"""Addresses of syslog and statsd."""

from __future__ import annotations

from logging.handlers import SysLogHandler

import pytest
from tricorn.config import collectors
from tricorn.config.collectors import Collector, StatsdHost, SyslogAddress
from tricorn.config.settings.collectors import FACILITIES
from tricorn.config.validators import Refused


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("localhost:8126", ("localhost", 8126)),
        ("LOCALHOST", ("localhost", 8125)),
        ("None:8125", ("none", 8125)),
        ("[::1]:9125", ("::1", 9125)),
        ("[::1]", ("::1", 8125)),
        ("unix:///run/statsd", "/run/statsd"),
        ("unix:run/statsd", "run/statsd"),
        ("unix:8125", ("unix", 8125)),
        (("10.0.0.1", 8125), ("10.0.0.1", 8125)),
        (("::1", 8125), ("::1", 8125)),
        ("", None),
        (None, None),
    ],
)
def test_statsd_is_a_host_and_a_port_or_a_path_as_gunicorn_has_it(text: object, value: object) -> None:
    assert StatsdHost().parse(text) == value


@pytest.mark.parametrize(
    ("text", "collector"),
    [
        ("udp://localhost:514", Collector("udp", "localhost", 514)),
        ("udp://", Collector("udp", "localhost", 514)),
        ("udp://Log.Example", Collector("udp", "log.example", 514)),
        ("tcp://10.0.0.1:601", Collector("tcp", "10.0.0.1", 601)),
        ("tcp://[::1]:601", Collector("tcp", "::1", 601)),
        ("unix:///dev/log", Collector("unix", "/dev/log")),
        ("unix:///dev/log#dgram", Collector("dgram", "/dev/log")),
        ("unix:///dev/log#stream", Collector("stream", "/dev/log")),
    ],
)
def test_syslog_has_an_address_with_a_scheme_and_keeps_its_text(text: str, collector: Collector) -> None:
    assert collectors.syslog(text) == collector
    assert SyslogAddress().parse(text) == text


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("localhost:514", "expected udp://HOST:PORT"),
        ("unix:/dev/log", "expected udp://HOST:PORT"),
        ("udp://localhost:syslog", "expected a port number behind the host, got 'syslog'"),
        ("tcp://localhost:70000", "expected a port number"),
        ("unix://", "expected the path"),
        ("unix:///dev/log#packet", "expected #dgram or #stream"),
    ],
)
def test_anything_else_is_refused_with_what_was_expected(text: str, says: str) -> None:
    with pytest.raises(Refused, match=says):
        SyslogAddress().parse(text)
    if "port" in says:
        with pytest.raises(Refused, match=says):
            StatsdHost().parse(text.removeprefix("udp://").removeprefix("tcp://"))


def test_facilities_have_the_numbers_of_the_standard_library() -> None:
    """But for `security`, which is 13 in gunicorn (log audit, RFC 5424), and another name of `auth` there."""
    common = (FACILITIES.keys() & SysLogHandler.facility_names.keys()) - {"security"}
    assert len(common) > 15
    assert {name: FACILITIES[name] for name in common} == {name: SysLogHandler.facility_names[name] for name in common}
