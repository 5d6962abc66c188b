"""Lines of the access log that are made in Python, and who makes them."""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from tricorn import log as logs
from tricorn.config.config import Config

Configure = Callable[..., Config]

ENVIRON = {
    "REQUEST_METHOD": "GET",
    "RAW_URI": "/a%20b?q=1",
    "PATH_INFO": "/a b",
    "QUERY_STRING": "q=1",
    "SERVER_PROTOCOL": "HTTP/1.1",
    "REMOTE_ADDR": "10.0.0.1",
    "HTTP_USER_AGENT": "curl/8",
    "HTTP_AUTHORIZATION": "Basic Ym9iOnNlY3JldA==",
    "tricorn.queue_time": 0.25,
}
REQUEST = SimpleNamespace(headers=[("HOST", "t"), ("ACCEPT", "*/*"), ("USER-AGENT", "curl/8")])
RESPONSE = SimpleNamespace(status="200 OK", sent=12, headers=[("Content-Type", "text/plain")])
TIME = timedelta(seconds=1, microseconds=234567)


def line(configure: Configure, capsys: pytest.CaptureFixture[str], text: str, **changed: Any) -> str:
    given: dict[str, Any] = {"resp": RESPONSE, "req": REQUEST, "environ": ENVIRON, "request_time": TIME, **changed}
    logs.make(configure(accesslog="-", access_log_format=text)).access(**given)
    return capsys.readouterr().out.rstrip("\n")


@pytest.mark.parametrize(
    ("atom", "value"),
    [
        ("h", "10.0.0.1"),
        ("l", "-"),
        ("u", "bob"),
        ("r", "GET /a%20b?q=1 HTTP/1.1"),
        ("m", "GET"),
        ("U", "/a b"),
        ("q", "q=1"),
        ("H", "HTTP/1.1"),
        ("s", "200"),
        ("B", "12"),
        ("b", "12"),
        ("f", "-"),
        ("a", "curl/8"),
        ("T", "1"),
        ("M", "1234"),
        ("D", "1234567"),
        ("L", "1.234567"),
        ("p", "<PID>"),
        ("{Host}i", "t"),
        ("{ACCEPT}i", "*/*"),
        ("{content-type}o", "text/plain"),
        ("{raw_uri}e", "/a%20b?q=1"),
        ("{Server_Protocol}e", "HTTP/1.1"),
        ("{x-none}i", "-"),
        ("{x-none}o", "-"),
        ("{none}e", "-"),
        ("nonsense", "-"),
    ],
)
def test_access_log_atoms(configure: Configure, capsys: pytest.CaptureFixture[str], atom: str, value: str) -> None:
    assert line(configure, capsys, f"%({atom})s") == value.replace("PID", str(os.getpid()))


def test_access_log_time(configure: Configure, capsys: pytest.CaptureFixture[str]) -> None:
    assert re.fullmatch(r"\[\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}\]", line(configure, capsys, "%(t)s"))


def test_a_request_that_took_longer_than_a_day(configure: Configure, capsys: pytest.CaptureFixture[str]) -> None:
    took = timedelta(days=1, seconds=1, microseconds=2)
    found = line(configure, capsys, "%(T)s %(M)s %(D)s %(L)s", request_time=took)
    assert found == "86401 86401000 86401000002 86401.000002"


def test_the_size_of_nothing(configure: Configure, capsys: pytest.CaptureFixture[str]) -> None:
    empty = SimpleNamespace(status="304 Not Modified", sent=0, headers=[])
    assert line(configure, capsys, "%(b)s %(B)s", resp=empty) == "0 0"
    unknown = SimpleNamespace(status=500, headers={})
    assert line(configure, capsys, "%(s)s %(b)s", resp=unknown) == "500 -"


def test_a_client_cannot_forge_a_line(configure: Configure, capsys: pytest.CaptureFixture[str]) -> None:
    environ = {**ENVIRON, "HTTP_USER_AGENT": 'a" 200\n\x1b[2Jé\\'}
    found = line(configure, capsys, '"%(a)s"', environ=environ)
    assert found == r'"a\" 200\x0a\x1b[2J\xe9\\"'


@pytest.mark.parametrize("credentials", ["Basic", "Basic !!!", "Basic /w==", "Bearer x", "basic Ym9i"])
def test_credentials_that_name_nobody(
    configure: Configure, capsys: pytest.CaptureFixture[str], credentials: str
) -> None:
    found = line(configure, capsys, "%(u)s", environ={**ENVIRON, "HTTP_AUTHORIZATION": credentials})
    assert found == ("bob" if credentials == "basic Ym9i" else "-")


def test_a_format_that_does_not_fit_is_an_error_in_the_log_and_not_in_the_request(
    configure: Configure, capsys: pytest.CaptureFixture[str]
) -> None:
    line(configure, capsys, "%(h)d %(nonsense")


def test_access_log_in_json(configure: Configure, capsys: pytest.CaptureFixture[str]) -> None:
    request = SimpleNamespace(headers=[("HOST", "t"), ("USER-AGENT", 'Gr\u00c3\u00bc"\u00dfe')])
    environ = {**ENVIRON, "tricorn.request_id": "abc"}
    logs.make(configure(accesslog="-", log_format="json")).access(RESPONSE, request, environ, TIME)
    found = json.loads(capsys.readouterr().out)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d", found.pop("time"))
    assert found == {
        "level": "INFO",
        "logger": "gunicorn.access",
        "remote": "10.0.0.1",
        "method": "GET",
        "path": "/a%20b",
        "query": "q=1",
        "protocol": "HTTP/1.1",
        "status": 200,
        "bytes": 12,
        "duration_us": 1234567,
        "queue_us": 250000,
        "referer": None,
        "user_agent": 'Grü"\ufffde',
        "host": "t",
        "outcome": None,
        "request_id": "abc",
        "pid": os.getpid(),
    }


def test_json_has_what_a_subclass_says(configure: Configure, capsys: pytest.CaptureFixture[str]) -> None:
    class Moved(logs.Logger):
        def atoms(self, *arguments: Any) -> dict[str, Any]:
            return {**super().atoms(*arguments), "h": "192.0.2.1", "s": "-", "B": None}

    log = logs.make(configure(accesslog="-", log_format="json", logger_class=Moved))
    log.access(RESPONSE, REQUEST, ENVIRON, TIME)
    log.access_log.info("a record of %s", "another")
    line, other = map(json.loads, capsys.readouterr().out.splitlines())
    assert (line["remote"], line["status"], line["bytes"]) == ("192.0.2.1", 0, 0)
    assert other["message"] == "a record of another"


class Overriding(logs.Logger):
    def atoms(self, *arguments: Any) -> dict[str, Any]:
        return {**super().atoms(*arguments), "shard": "7"}


class Counting(logs.Logger):
    def access(self, *_: Any) -> None:
        pass


class Dated(logs.Logger):
    def now(self) -> str:
        return "today"


class Prefixed(logs.Logger):
    access_fmt = "access: %(message)s"


class Filtering(logs.Logger):
    def setup(self, cfg: Config) -> None:
        super().setup(cfg)
        self.access_log.filters[:] = [lambda record: True]


class Reformatting(logs.Logger):
    def setup(self, cfg: Config) -> None:
        super().setup(cfg)
        self._set_handler(self.access_log, cfg.accesslog, logging.Formatter("%(message)s"))


@pytest.mark.parametrize(
    ("settings", "native", "python"),
    [
        ({}, None, False),
        ({"accesslog": "-"}, "-", False),
        ({"accesslog": "/dev/null"}, "/dev/null", False),
        ({"accesslog": "-", "log_format": "json"}, "-", False),
        ({"accesslog": "-", "logconfig_dict": {"version": 1}}, None, True),
        ({"logconfig_dict": {"version": 1}}, None, True),
        ({"accesslog": "-", "logger_class": Overriding}, None, True),
        ({"logger_class": Overriding}, None, False),
        ({"accesslog": "-", "logger_class": Dated}, None, True),
        ({"accesslog": "-", "logger_class": Prefixed}, None, True),
        ({"accesslog": "-", "logger_class": Filtering}, None, True),
        ({"accesslog": "-", "logger_class": Reformatting}, None, True),
        ({"accesslog": "-", "logger_class": Counting}, None, True),
        ({"logger_class": Counting}, None, True),
    ],
)
def test_who_writes_the_access_log(
    configure: Configure, settings: dict[str, Any], native: str | None, python: bool
) -> None:
    config = configure(**settings)
    log = logs.make(config)
    assert logs.native_access(config, log) == native
    by_its_setup = settings.get("logger_class") in (Filtering, Reformatting)
    assert logs.may_be_native(config) == (native is not None or by_its_setup)
    assert logs.python_access(config, log) == python


def test_a_handler_that_somebody_adds_is_served_by_python(configure: Configure) -> None:
    config = configure(accesslog="-")
    log = logs.make(config)
    log.access_log.addHandler(logging.NullHandler())
    assert logs.native_access(config, log) is None
    assert logs.python_access(config, log)


def test_what_a_subclass_adds_stands_in_the_line(configure: Configure, capsys: pytest.CaptureFixture[str]) -> None:
    config = configure(accesslog="-", logger_class=Overriding, access_log_format="%(m)s %(shard)s")
    logs.make(config).access(RESPONSE, REQUEST, ENVIRON, TIME)
    assert capsys.readouterr().out == "GET 7\n"


def test_without_an_access_log_nothing_is_written(configure: Configure, capsys: pytest.CaptureFixture[str]) -> None:
    log = logs.make(configure())
    assert not log.access_log_enabled
    log.access(RESPONSE, REQUEST, ENVIRON, TIME)
    assert capsys.readouterr() == ("", "")
