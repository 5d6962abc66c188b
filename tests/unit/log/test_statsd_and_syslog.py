"""What Python sends to syslog and statsd: the bytes, and who sends them."""

from __future__ import annotations

import json
import logging
import os
import re
import socket
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from tricorn import _core
from tricorn import log as logs
from tricorn.config.config import Config
from tricorn.log.statsd import Statsd

from tests.harness.needs import gunicorns_packages

Configure = Callable[..., Config]


class Heard(socket.socket):
    """A collector at a port of its own."""

    def __init__(self) -> None:
        super().__init__(socket.AF_INET, socket.SOCK_DGRAM)
        self.bind(("127.0.0.1", 0))
        self.setblocking(False)
        self.port: int = self.getsockname()[1]

    def all(self) -> list[str]:
        """What came: on the loopback a datagram is there when send(2) returns."""
        got = []
        while True:
            try:
                got.append(self.recv(1 << 16).decode())
            except BlockingIOError:
                return got


@pytest.fixture
def heard() -> Iterator[Heard]:
    with Heard() as made:
        yield made


def statsd(configure: Configure, heard: Heard, **settings: Any) -> Statsd:
    logger = logs.make(configure(statsd_host=f"127.0.0.1:{heard.port}", errorlog="/dev/null", **settings))
    assert isinstance(logger, Statsd)
    return logger


def test_methods_and_extra_are_gunicorns(configure: Configure, heard: Heard) -> None:
    logger = statsd(configure, heard)
    logger.gauge("a", 3)
    logger.increment("b", 1)
    logger.increment("b", 2, 0.1)
    logger.decrement("c", 4)
    logger.timer("d", 0.518)
    logger.histogram("e", 5)
    for kind in ("gauge", "counter", "timer", "histogram", "set"):
        logger.info("", extra={"metric": "f", "value": 0, "mtype": kind})
    logger.debug("quiet", extra={"metric": "g", "value": 1, "mtype": "gauge"})
    logger.log("info", "one", extra={"metric": "h"})
    assert heard.all() == [
        "a:3|g",
        "b:1|c|@1.0",
        "b:2|c|@0.1",
        "c:-4|c|@1.0",
        "d:0.518|ms",
        "e:5|h",
        "f:0|g",
        "f:0|c|@1.0",
        "f:0|ms",
        "f:0|h",
        "g:1|g",
    ]


def test_what_is_logged_is_counted_by_its_kind(configure: Configure, heard: Heard) -> None:
    logger = statsd(configure, heard, statsd_prefix="shop", dogstatsd_tags="a:b")
    for kind in ("critical", "error", "warning", "exception", "info", "debug"):
        getattr(logger, kind)("said")
    kinds = ("critical", "error", "warning", "exception")
    assert heard.all() == [f"shop.gunicorn.log.{kind}:1|c|@1.0|#a:b" for kind in kinds]


@pytest.mark.parametrize(
    ("given", "prefix"), [("", ""), ("a", "a"), ("ab", "ab."), ("shop.", "shop."), ("a.b..", "a.b."), ("..", "..")]
)
def test_a_prefix_gets_its_point_as_with_gunicorn(configure: Configure, heard: Heard, given: str, prefix: str) -> None:
    statsd(configure, heard, statsd_prefix=given).gauge("n", 1)
    assert heard.all() == [f"{prefix}n:1|g"]


def access(logger: Any) -> None:
    fields = SimpleNamespace(status="404 Not Found", sent=0, headers=[])
    environ = {"REQUEST_METHOD": "GET", "RAW_URI": "/", "SERVER_PROTOCOL": "HTTP/1.1", "tricorn.queue_time": 0.0}
    logger.access(fields, SimpleNamespace(headers=[]), environ, timedelta(seconds=61, microseconds=234_001))


def test_a_request_that_the_core_does_not_measure(configure: Configure, heard: Heard) -> None:
    access(statsd(configure, heard))
    assert heard.all() == [
        "gunicorn.request.duration:61234.001|ms",
        "gunicorn.requests:1|c|@1.0",
        "gunicorn.request.status.404:1|c|@1.0",
    ]


def test_the_bytes_are_those_of_gunicorn_itself(
    configure: Configure, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages = gunicorns_packages()
    if packages is None:
        pytest.skip("needs gunicorn itself: make test-reference")
    monkeypatch.syspath_prepend(str(packages))
    ours = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "gunicorn"}
    finders = [each for each in sys.meta_path if "tricorn" in type(each).__module__]
    for name in ours:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [each for each in sys.meta_path if each not in finders])
    try:
        from gunicorn.config import Config as TheirConfig
        from gunicorn.instrument.statsd import Statsd as TheirStatsd

        theirs = TheirConfig()
        said = []
        options = {
            "statsd_prefix": "shop",
            "dogstatsd_tags": "a:b",
            "syslog_prefix": "shop",
            "syslog_facility": "local3",
        }
        options |= {"statsd_host": f"127.0.0.1:{heard.port}", "syslog": True, "accesslog": None, "loglevel": "debug"}
        options |= {"syslog_addr": f"udp://127.0.0.1:{heard.port}", "errorlog": "/dev/null"}
        for name, value in options.items():
            theirs.set(name, value)
        for make in (partial(TheirStatsd, theirs), partial(logs.make, configure(**options))):
            logger = make()
            for kind in ("critical", "error", "warning", "info", "debug"):
                getattr(logger, kind)("said %s äöü\n%d", "it", 2, extra={"metric": "m", "value": 1, "mtype": "gauge"})
            try:
                raise OSError("no")
            except OSError:
                logger.exception("failed")
            access(logger)
            logger.access_log.handlers[:] = []
            logger.error_log.handlers[:] = []
            told = heard.all()
            said.append([re.sub(r"line \d+", "line", re.sub(r"\[../.*?\]", "[time]", each)) for each in told])
        assert said[0] == said[1]
        assert len(said[0]) > 15
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == "gunicorn"]:
            del sys.modules[name]
        sys.modules.update(ours)


def test_records_of_the_error_log_and_lines_made_in_python_go_to_syslog(configure: Configure, heard: Heard) -> None:
    config = configure(
        syslog=True, syslog_addr=f"udp://127.0.0.1:{heard.port}", proc_name="shop:app", errorlog="/dev/null"
    )
    logger = logs.make(config)
    logger.warning("careful %d", 100)
    logger.log(logging.ERROR, "multi\nline")
    logger.access_log.info("a line")
    head = f"gunicorn.shop.app.error: [{os.getpid()}]"
    assert heard.all() == [
        f"<12>{head} careful 100\0",
        f"<11>{head} multi\nline\0",
        f"<14>gunicorn.shop.app.access: [{os.getpid()}] a line\0",
    ]


def test_json_is_the_message_of_a_line_for_syslog(configure: Configure, heard: Heard) -> None:
    address = f"udp://127.0.0.1:{heard.port}"
    logger = logs.make(
        configure(syslog=True, syslog_addr=address, log_format="json", syslog_prefix="a", errorlog="/dev/null")
    )
    logger.error("what")
    (line,) = heard.all()
    head, _, rest = line.partition("] ")
    assert head == f"<11>gunicorn.a.error: [{os.getpid()}"
    assert json.loads(rest.rstrip("\0"))["message"] == "what"


def test_rfc5424_has_a_time_a_host_and_on_a_stream_a_length(configure: Configure, heard: Heard) -> None:
    options = {"syslog": True, "syslog_format": "rfc5424", "syslog_prefix": "shop web", "errorlog": "/dev/null"}
    logs.make(configure(syslog_addr=f"udp://127.0.0.1:{heard.port}", **options)).error("what")
    (line,) = heard.all()
    form = rf"<11>1 \d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{{6}}Z \S+ gunicorn\.shop_web {os.getpid()} error - what"
    assert re.fullmatch(form, line)
    with socket.create_server(("127.0.0.1", 0)) as there:
        logger = logs.make(configure(syslog_addr=f"tcp://127.0.0.1:{there.getsockname()[1]}", **options))
        logger.error("what")
        with there.accept()[0] as stream:
            length, _, message = stream.recv(1000).partition(b" ")
        assert int(length) == len(message)
        assert re.fullmatch(form, message.decode())


def test_a_syslog_that_is_not_there_keeps_no_server_from_starting(configure: Configure) -> None:
    logger = logs.make(configure(syslog=True, syslog_addr="unix:///nonexistent/log", errorlog="/dev/null"))
    logger.error("kept")


class TestWhoTells:
    def test_the_core_sends_all_that_no_subclass_changes(self, configure: Configure, heard: Heard) -> None:
        address = {"statsd_host": f"127.0.0.1:{heard.port}", "syslog_addr": f"udp://127.0.0.1:{heard.port}"}
        config = configure(**address, syslog=True, syslog_prefix="p", statsd_prefix="qq", errorlog="/dev/null")
        logger = logs.make(config)
        assert isinstance(logger, Statsd)
        assert logger.outlet is not None
        collector, *frame = logs.native_syslog(config, logger) or ()
        assert isinstance(collector, _core.Collector)
        assert collector.address == ("127.0.0.1", heard.port)
        assert collector.fileno() >= 0
        assert frame == [f"<14>gunicorn.p.access: [{os.getpid()}] ".encode(), None, b"\0", False]
        assert logs.native_statsd(config, logger) == (logger.outlet.native, "qq.", "", 1432, False)
        assert logs.native_access(config, logger) is None
        assert not logs.python_access(config, logger)

    @pytest.mark.parametrize(("given", "most"), [("auto", 8192), (0, 0), ("4K", 4096)])
    def test_datagrams_of_a_unix_socket_are_longer(self, configure: Configure, given: object, most: int) -> None:
        config = configure(statsd_host="unix:///nonexistent", statsd_datagram=given, errorlog="/dev/null")
        option = logs.native_statsd(config, logs.make(config))
        assert option is not None
        assert isinstance(option[0], _core.Collector)
        assert (option[0].address, option[0].fileno(), option[3]) == ("/nonexistent", -1, most)

    def test_syslog_without_access_lines(self, configure: Configure, heard: Heard) -> None:
        address = f"udp://127.0.0.1:{heard.port}"
        config = configure(
            syslog=True, syslog_addr=address, disable_redirect_access_to_syslog=True, errorlog="/dev/null"
        )
        logger = logs.make(config)
        assert (logs.native_syslog(config, logger), logger.access_log_enabled) == (None, False)

    def test_a_subclass_that_measures_itself_is_called_for_each_request(
        self, configure: Configure, heard: Heard
    ) -> None:
        class Mine(Statsd):
            def timer(self, name: str, value: object) -> None:
                super().timer("mine", value)

        config = configure(statsd_host=f"127.0.0.1:{heard.port}", logger_class=Mine, errorlog="/dev/null")
        logger = logs.make(config)
        assert logs.native_statsd(config, logger) is None
        assert logs.python_access(config, logger)
        logs.access_of(logger)(SimpleNamespace(status=200), None, {}, timedelta(0))
        assert heard.all()[0] == "mine:0.0|ms"

    def test_lines_made_in_python_do_not_measure_a_second_time(self, configure: Configure, heard: Heard) -> None:
        configuration = {"version": 1, "disable_existing_loggers": False, "loggers": {"gunicorn.access": {}}}
        config = configure(statsd_host=f"127.0.0.1:{heard.port}", logconfig_dict=configuration, errorlog="/dev/null")
        logger = logs.make(config)
        assert logs.python_access(config, logger)
        assert logs.native_statsd(config, logger) is not None
        access(SimpleNamespace(access=logs.access_of(logger)))
        assert heard.all() == []

    def test_without_a_collector_nothing_is_sent(self, configure: Configure) -> None:
        config = configure(logger_class="gunicorn.instrument.statsd.Statsd", errorlog="/dev/null")
        logger = logs.make(config)
        assert type(logger) is Statsd
        assert logger.sock is None
        logger.gauge("a", 1)
        assert logs.native_statsd(config, logger) is None
