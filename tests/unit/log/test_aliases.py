"""The other names of the two logs: what is logged under them, and what the application makes of them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta
from logging.config import dictConfig
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tricorn import compat
from tricorn import log as logs
from tricorn.config.config import Config
from tricorn.log import Logger, aliases

Configure = Callable[..., Config]
Captured = pytest.CaptureFixture[str]

ERROR_NAMES = ("tricorn.error", "uvicorn", "uvicorn.error", "uvicorn.asgi", "hypercorn.error", "_granian")
ACCESS_NAMES = ("tricorn.access", "uvicorn.access", "hypercorn.access", "granian.access")

ENVIRON = {
    "REQUEST_METHOD": "GET",
    "RAW_URI": "/a%20b?q=1",
    "PATH_INFO": "/a b",
    "QUERY_STRING": "q=1",
    "SERVER_PROTOCOL": "HTTP/1.1",
    "REMOTE_ADDR": "10.0.0.1",
    "REMOTE_PORT": "4711",
}
UVICORNS = ("10.0.0.1:4711", "GET", "/a%20b?q=1", "1.1", 200)


class Kept(logging.Handler):
    """Keeps records."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    @property
    def texts(self) -> list[str]:
        return [record.getMessage() for record in self.records]


class NoHealth(logging.Filter):
    """The recipe against health checks in the log."""

    def filter(self, record: logging.LogRecord) -> bool:
        return "/health" not in record.getMessage()


def ask(log: Logger, path: str = "/a b", **environ: Any) -> None:
    response = SimpleNamespace(status="200 OK", sent=12, headers=[("Content-Type", "text/plain")])
    request = SimpleNamespace(headers=[("HOST", "t")])
    log.access(response, request, {**ENVIRON, "PATH_INFO": path, **environ}, timedelta(seconds=1))


def to(handler: logging.Handler, *names: str, **more: Any) -> dict[str, Any]:
    """A configuration in which these loggers have this handler alone."""
    entry = {"handlers": ["kept"], "level": "INFO", "propagate": False}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "root": {},
        "handlers": {"kept": {"()": lambda: handler}},
        "loggers": dict.fromkeys(names, entry),
        **more,
    }


@pytest.mark.parametrize("name", ERROR_NAMES)
def test_what_is_logged_under_another_name_is_in_the_log_once(
    configure: Configure, capsys: Captured, name: str
) -> None:
    logs.make(configure())
    logging.getLogger(name).info("hello")
    logging.getLogger(name).debug("not of this level")
    written = capsys.readouterr()
    assert [line.partition("] [INFO] ")[2] for line in written.err.splitlines()] == ["hello"]
    assert written.out == ""


def test_the_other_names_have_the_level_of_the_log(configure: Configure, capsys: Captured) -> None:
    log = logs.make(configure(loglevel="debug"))
    log.change_level("warning")
    for name in ERROR_NAMES:
        logging.getLogger(name).info("hello")
    log.change_level("debug")
    logging.getLogger("uvicorn.error").debug("once")
    assert capsys.readouterr().err.count("\n") == 1


def test_the_other_names_have_the_handlers_of_a_logger_class(configure: Configure, capsys: Captured) -> None:
    class Mine(Logger):
        def setup(self, cfg: Config) -> None:
            super().setup(cfg)
            self._set_handler(self.error_log, cfg.errorlog, logging.Formatter("mine|%(message)s"))

    log = logs.make(configure(logger_class=Mine))
    log.info("of the server")
    logging.getLogger("uvicorn.error").info("of the application")
    assert capsys.readouterr().err == "mine|of the server\nmine|of the application\n"


@pytest.mark.parametrize("name", ACCESS_NAMES)
def test_a_filter_on_any_name_works_on_access_lines(configure: Configure, capsys: Captured, name: str) -> None:
    config = configure(accesslog="-", access_log_format="%(m)s %(U)s %(s)s")
    log = logs.make(config)
    assert not logs.python_access(config, log)
    logging.getLogger(name).addFilter(NoHealth())
    assert logs.python_access(config, log)
    assert logs.native_access(config, log) is None
    ask(log, "/health")
    ask(log, "/x")
    assert capsys.readouterr().out == "GET /x 200\n"  # in the format of the setting


def test_uvicorns_access_logger_has_uvicorns_records(configure: Configure, capsys: Captured) -> None:
    log, kept = logs.make(configure(accesslog="-", access_log_format="%(s)s")), Kept()
    logging.getLogger("uvicorn.access").addHandler(kept)
    ask(log)
    (record,) = kept.records
    assert record.args == UVICORNS
    assert record.name == "uvicorn.access"
    assert record.getMessage() == '10.0.0.1:4711 - "GET /a%20b?q=1 HTTP/1.1" 200'
    assert not [name for name in vars(record) if "line" in name and name != "lineno"]  # no header fields for JSON logs
    assert capsys.readouterr().out == "200\n"


def test_gunicorns_access_logger_has_gunicorns_records(configure: Configure) -> None:
    log, kept = logs.make(configure(accesslog="-", access_log_format="%(s)s")), Kept()
    logging.getLogger("gunicorn.access").addHandler(kept)
    ask(log)
    (record,) = kept.records
    assert isinstance(record.args, dict)
    assert (record.args["r"], record.args["{host}i"], record.getMessage()) == ("GET /a%20b?q=1 HTTP/1.1", "t", "200")


def test_what_a_client_sends_does_not_leave_its_line(configure: Configure) -> None:
    log, kept = logs.make(configure()), Kept()
    logging.getLogger("uvicorn.access").addHandler(kept)
    ask(log, '/"\n', QUERY_STRING='"\r\n', REMOTE_ADDR="", REMOTE_PORT="")
    (text,) = kept.texts
    assert text == ' - "GET /%22%0A?\\"\\x0d\\x0a HTTP/1.1" 200'


@pytest.mark.parametrize("format_", ["json", "gunicorn"])
def test_a_filter_changes_no_line_that_it_lets_through(configure: Configure, capsys: Captured, format_: str) -> None:
    log = logs.make(configure(accesslog="-", log_format=format_))
    ask(log)
    before = capsys.readouterr().out
    logging.getLogger("uvicorn.access").addFilter(lambda record: True)
    ask(log)
    after = capsys.readouterr().out
    assert before.count("\n") == 1
    assert [part for part in after.split() if ":" not in part] == [part for part in before.split() if ":" not in part]


def test_the_factory_of_records_is_asked(configure: Configure, monkeypatch: pytest.MonkeyPatch) -> None:
    log, kept = logs.make(configure()), Kept()
    logging.getLogger("uvicorn.access").addHandler(kept)
    before = logging.getLogRecordFactory()

    def factory(*arguments: Any, **options: Any) -> logging.LogRecord:
        record = before(*arguments, **options)
        record.trace = "t"
        return record

    logging.setLogRecordFactory(factory)
    try:
        ask(log)
    finally:
        logging.setLogRecordFactory(before)
    assert kept.records[0].trace == "t"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "silence",
    [
        lambda logger: logger.handlers.clear(),
        lambda logger: setattr(logger, "disabled", True),
        lambda logger: logger.setLevel(logging.WARNING),
        lambda logger: logger.addFilter(lambda record: False),
    ],
)
def test_an_access_log_that_the_application_silences_is_silent(
    configure: Configure, capsys: Captured, silence: Callable[[logging.Logger], object]
) -> None:
    config = configure(accesslog="-")
    log = logs.make(config)
    silence(logging.getLogger("uvicorn.access"))
    aliases.enable()
    assert not logs.is_native(config, log)
    ask(log)
    log.info("of the server")
    written = capsys.readouterr()
    assert written.out == ""
    assert "of the server" in written.err


def test_without_an_access_log_a_handler_has_its_lines_and_a_filter_makes_none(
    configure: Configure, capsys: Captured
) -> None:
    config, kept = configure(), Kept()
    log = logs.make(config)
    logging.getLogger("uvicorn.access").addFilter(NoHealth())
    assert not logs.python_access(config, log)
    logging.getLogger("uvicorn.access").addHandler(kept)
    assert logs.python_access(config, log)
    ask(log)
    assert len(kept.records) == 1
    assert capsys.readouterr() == ("", "")
    off = configure(accesslog=None)  # --no-access-log
    assert not logs.python_access(off, logs.make(off))


def test_a_formatter_that_the_application_sets(configure: Configure, capsys: Captured) -> None:
    log = logs.make(configure(accesslog="-", access_log_format="%(U)s"))
    logging.getLogger("uvicorn.access").handlers[0].setFormatter(logging.Formatter("mine %(message)s"))
    ask(log)
    assert capsys.readouterr().out == "mine /a b\n"


def test_handlers_of_uvicorn_print_errors_of_the_server(configure: Configure, capsys: Captured) -> None:
    """As code that hands all logs to another library has it."""
    log, kept = logs.make(configure()), Kept()
    logging.getLogger("uvicorn").handlers = [kept]
    logging.getLogger("uvicorn.error").handlers = []
    log.error("of a request")
    logging.getLogger("uvicorn.error").info("of the application")
    assert kept.texts == ["of a request", "of the application"]
    assert capsys.readouterr() == ("", "")


def test_uvicorns_loggers_that_propagate_reach_the_root(
    configure: Configure, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As code that gives the root a handler of its own has it: once, and not in the server's format as well."""
    log, kept = logs.make(configure(accesslog="-")), Kept()
    monkeypatch.setattr(logging.root, "handlers", [kept])
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = True
    log.error("of a request")
    ask(log)
    assert kept.texts == ["of a request", '10.0.0.1:4711 - "GET /a%20b?q=1 HTTP/1.1" 200']
    assert capsys.readouterr() == ("", "")


def test_errors_are_not_lost_with_the_handlers_of_uvicorn(configure: Configure, capsys: Captured) -> None:
    log = logs.make(configure())
    logging.getLogger("uvicorn").handlers.clear()
    log.error("of a request")
    assert "of a request" in capsys.readouterr().err


@pytest.mark.parametrize("names", [("uvicorn", "uvicorn.access"), ("gunicorn.error",), ()])
def test_an_applications_configuration_that_leaves_names_out(
    configure: Configure, capsys: Captured, names: tuple[str, ...]
) -> None:
    """`disable_existing_loggers` is True where it is not given."""
    config, kept = configure(accesslog="-"), Kept()
    log = logs.make(config)
    dictConfig({**to(kept, *names), "disable_existing_loggers": True})
    assert aliases.enable() == ("gunicorn.error" not in names)
    log.error("of a request")
    ask(log)
    written, shown = capsys.readouterr(), " ".join(kept.texts)
    assert (written.err + shown).count("of a request") == 1
    assert (written.out + shown).count("/a%20b?q=1") == 1
    assert ("of a request" in shown) == bool(names)
    assert logs.is_native(config, log) == ("uvicorn.access" not in names)


class TestConfigurations:
    """`logconfig` and its kin."""

    @pytest.mark.parametrize("name", [*ERROR_NAMES[:3], *ERROR_NAMES[4:], "gunicorn.error"])
    def test_the_error_log(self, configure: Configure, capsys: Captured, name: str) -> None:
        kept = Kept()
        log = logs.make(configure(logconfig_dict=to(kept, name)))
        log.info("of the server")
        logging.getLogger(name).info("of the application")
        assert kept.texts == ["of the server", "of the application"]
        assert capsys.readouterr() == ("", "")

    @pytest.mark.parametrize("name", [*ACCESS_NAMES, "gunicorn.access"])
    def test_the_access_log(self, configure: Configure, capsys: Captured, name: str) -> None:
        kept, config = Kept(), configure(logconfig_dict=(given := to(Kept(), name)))
        given["handlers"]["kept"]["()"] = lambda: kept
        log = logs.make(config)
        assert logs.python_access(config, log)
        ask(log)
        (record,) = kept.records
        assert record.args == UVICORNS if name == "uvicorn.access" else isinstance(record.args, dict)
        assert capsys.readouterr().out == ""

    def test_access_lines_reach_handlers_of_uvicorn(self, configure: Configure) -> None:
        """`uvicorn.access` is its child, so that a file that names `uvicorn` alone is for both."""
        kept = Kept()
        log = logs.make(configure(logconfig_dict=to(kept, "uvicorn")))
        ask(log)
        assert [record.args for record in kept.records] == [UVICORNS]

    def test_gunicorns_names_count_before_uvicorns(self, configure: Configure, capsys: Captured) -> None:
        """Under uvicorn's worker class for gunicorn uvicorn's loggers have the handlers of gunicorn's."""
        kept, unused = Kept(), Kept()
        given = to(kept, "gunicorn.error", "gunicorn.access")
        given["handlers"]["unused"] = {"()": lambda: unused}
        given["loggers"] |= {name: {"handlers": ["unused"]} for name in ("uvicorn", "uvicorn.error")}
        log = logs.make(configure(logconfig_dict=given))
        log.info("of the server")
        logging.getLogger("uvicorn.error").info("of the application")
        ask(log)
        assert kept.texts[:2] == ["of the server", "of the application"]
        assert len(kept.records) == 3
        assert unused.records == []
        assert capsys.readouterr() == ("", "")

    @pytest.mark.parametrize("entry", [{"level": "INFO"}, {"level": "INFO", "propagate": True}])
    def test_a_level_alone_makes_no_log_mute(
        self, configure: Configure, capsys: Captured, monkeypatch: pytest.MonkeyPatch, entry: dict[str, Any]
    ) -> None:
        monkeypatch.setattr(logging.root, "handlers", [])
        given = {"version": 1, "root": {"level": "INFO"}, "loggers": {"uvicorn.error": entry}}
        logs.make(configure(logconfig_dict=given)).info("of the server")
        assert capsys.readouterr().err.count("of the server") == 1

    @pytest.mark.parametrize(("level", "texts"), [("debug", ["a", "b"]), ("error", [])])
    def test_a_level_that_was_asked_for_counts(self, configure: Configure, level: str, texts: list[str]) -> None:
        """As with uvicorn's `--log-level`. A level that was not leaves the configuration's."""
        kept = Kept()
        log = logs.make(configure(loglevel=level, logconfig_dict=to(kept, "uvicorn", "uvicorn.access")))
        log.debug("a")
        logging.getLogger("uvicorn.error").debug("b")
        ask(log)
        assert kept.texts[:2] == texts
        assert len(kept.records) == (3 if texts else 0)

    def test_the_access_log_can_be_switched_off(self, configure: Configure) -> None:
        kept = Kept()
        config = configure(accesslog=None, logconfig_dict=to(kept, "uvicorn", "uvicorn.access"))
        log = logs.make(config)
        assert not logs.python_access(config, log)
        ask(log)
        assert kept.records == []

    def test_one_that_names_no_logger_of_the_server_is_told(self, configure: Configure, capsys: Captured) -> None:
        given = to(Kept(), "shop")
        log = logs.make(configure(logconfig_dict=given))
        log.info("of the server")
        told, of_the_server = capsys.readouterr().err.splitlines()
        assert (
            "The log configuration logconfig_dict does not configure the server's loggers; their lines go to errorlog."
            in told
        )
        assert "of the server" in of_the_server

    def test_nor_does_a_file_of_the_root_alone_make_it_mute(
        self, configure: Configure, capsys: Captured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(logging.root, "handlers", [])
        (tmp_path / "log.json").write_text('{"version": 1, "loggers": {"shop": {"level": "INFO"}}}')
        logs.make(configure(logconfig=str(tmp_path / "log.json"))).info("of the server")
        assert capsys.readouterr().err.count("does not configure the server's loggers") == 1
        (tmp_path / "log.json").write_text(
            '{"version": 1, "handlers": {"f": {"class": "logging.FileHandler", "filename": "%s"}},'
            '"root": {"level": "INFO", "handlers": ["f"]}}' % (tmp_path / "f")
        )
        logs.make(configure(logconfig=str(tmp_path / "log.json"))).info("hello")
        logging.getLogger("uvicorn.error").info("of the application")
        told, *rest = (tmp_path / "f").read_text().splitlines()
        assert "their lines go to the handlers of the root logger" in told
        assert rest == ["hello", "of the application"]

    def test_a_reload_forgets_the_old_one(self, configure: Configure, capsys: Captured) -> None:
        old, added = Kept(), Kept()
        logs.make(configure(logconfig_dict=to(old, "uvicorn", "uvicorn.access")))
        logging.getLogger("uvicorn.access").addFilter(NoHealth())
        log = logs.make(configure(loglevel="debug"))
        for name in ERROR_NAMES:
            logging.getLogger(name).debug("hello")
        assert capsys.readouterr().err.count("hello") == len(ERROR_NAMES)
        logging.getLogger("uvicorn").addHandler(added)
        log = logs.make(configure())
        log.error("of the server")
        assert added.texts == ["of the server"]
        assert capsys.readouterr().err.count("of the server") == 1
        assert old.records == []


def test_a_formatter_of_uvicorns_takes_lines_apart(configure: Configure, capsys: Captured) -> None:
    """Set on the handler that both names have: its records are uvicorn's, which are all that it can take."""
    compat.install()
    from uvicorn.logging import AccessFormatter

    log = logs.make(configure(accesslog="-"))
    formatter = AccessFormatter(
        '%(levelprefix)s %(client_addr)s - "%(request_line)s" %(status_code)s', use_colors=False
    )
    log.access_log.handlers[0].setFormatter(formatter)
    ask(log)
    assert capsys.readouterr().out == 'INFO:     10.0.0.1:4711 - "GET /a%20b?q=1 HTTP/1.1" 200 OK\n'


def test_no_name_is_linked_where_there_is_no_log() -> None:
    logger = logging.getLogger("some.other")
    assert aliases.route(logger) is logger
