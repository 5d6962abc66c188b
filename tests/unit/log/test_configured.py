"""logconfig, logconfig_dict, logconfig_json: what the operator's configuration makes of the two logs."""

from __future__ import annotations

import gc
import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tricorn import compat
from tricorn import log as logs
from tricorn.config import program
from tricorn.config.config import Config
from tricorn.errors import ConfigError
from tricorn.log.configured import CONFIG_DEFAULTS

Configure = Callable[..., Config]

INI = """
[loggers]
keys=root,error
[handlers]
keys=file
[formatters]
keys=short
[logger_root]
level=WARNING
handlers=file
[logger_error]
level=INFO
handlers=file
qualname=gunicorn.error
propagate=0
[handler_file]
class=FileHandler
formatter=short
args=(r'%(here)s/ini.log',)
[formatter_short]
format=ini|%(levelname)s|%(message)s
"""


def to_file(path: Path, **more: Any) -> dict[str, Any]:
    handler = {"class": "logging.FileHandler", "filename": str(path), "formatter": "short"}
    return {
        "version": 1,
        "formatters": {"short": {"format": "dict|%(levelname)s|%(message)s"}},
        "handlers": {"file": handler},
        "root": {"level": "INFO", "handlers": ["file"]},
        "loggers": {"gunicorn.error": {"level": "DEBUG", "handlers": ["file"], "propagate": False}},
        **more,
    }


def test_a_dictionary_of_uvicorns_is_whole(configure: Configure, tmp_path: Path) -> None:
    given = to_file(tmp_path / "log", loggers={"uvicorn": {"level": "INFO", "handlers": ["file"]}})
    del given["root"]
    layer = program.read({"log_config": given})
    log = logs.make(configure(**{name: raw.value for name, raw in layer.values.items()}))
    log.info("of the server")
    assert (tmp_path / "log").read_text() == "dict|INFO|of the server\n"


def test_logconfig_dict(configure: Configure, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = logs.make(configure(logconfig_dict=to_file(tmp_path / "dict.log")))
    log.debug("hello")
    assert (tmp_path / "dict.log").read_text() == "dict|DEBUG|hello\n"
    assert capsys.readouterr() == ("", "")


def test_a_dictionary_may_use_our_names(configure: Configure, tmp_path: Path) -> None:
    given = to_file(tmp_path / "dict.log", disable_existing_loggers=True)
    given["loggers"] = {"tricorn.error": given["loggers"]["gunicorn.error"]}
    logs.make(configure(logconfig_dict=given)).info("hello")
    assert (tmp_path / "dict.log").read_text() == "dict|INFO|hello\n"


def test_it_is_laid_over_gunicorns_defaults_key_by_key(
    configure: Configure, capsys: pytest.CaptureFixture[str]
) -> None:
    """Giving `formatters` replaces all formatters; the handlers and loggers of the defaults stay."""
    log = logs.make(configure(logconfig_dict={"formatters": {"generic": {"format": "mine %(message)s"}}}))
    log.info("hello")
    written = capsys.readouterr()
    assert written.err == "mine hello\n"
    assert written.out == "mine hello\n"  # propagated to the root's console, as with gunicorn


def test_the_defaults_are_gunicorns() -> None:
    assert CONFIG_DEFAULTS["disable_existing_loggers"] is False
    assert CONFIG_DEFAULTS["root"] == {"level": "INFO", "handlers": ["console"]}
    assert CONFIG_DEFAULTS["loggers"]["gunicorn.access"] == {
        "level": "INFO",
        "handlers": ["console"],
        "propagate": True,
        "qualname": "gunicorn.access",
    }
    assert CONFIG_DEFAULTS["handlers"]["error_console"] == {
        "class": "logging.StreamHandler",
        "formatter": "generic",
        "stream": "ext://sys.stderr",
    }
    assert CONFIG_DEFAULTS["formatters"]["generic"]["datefmt"] == "[%Y-%m-%d %H:%M:%S %z]"


def test_a_json_file(configure: Configure, tmp_path: Path) -> None:
    (tmp_path / "log.json").write_text(json.dumps(to_file(tmp_path / "out.log")))
    logs.make(configure(logconfig_json=str(tmp_path / "log.json"))).info("hello")
    assert (tmp_path / "out.log").read_text() == "dict|INFO|hello\n"


def test_an_ini_file(configure: Configure, tmp_path: Path) -> None:
    (tmp_path / "log.ini").write_text(INI)
    logs.make(configure(logconfig=str(tmp_path / "log.ini"))).info("hello")
    assert (tmp_path / "ini.log").read_text() == "ini|INFO|hello\n"


def test_an_ini_file_may_use_our_names(configure: Configure, tmp_path: Path) -> None:
    (tmp_path / "log.ini").write_text(INI.replace("gunicorn.error", "tricorn.error"))
    logs.make(configure(logconfig=str(tmp_path / "log.ini"))).info("hello")
    assert (tmp_path / "ini.log").read_text() == "ini|INFO|hello\n"


def test_a_yaml_file(configure: Configure, tmp_path: Path) -> None:
    pytest.importorskip("yaml")
    (tmp_path / "log.yaml").write_text(json.dumps(to_file(tmp_path / "out.log")))  # JSON is YAML too
    logs.make(configure(logconfig=str(tmp_path / "log.yaml"))).info("hello")
    assert (tmp_path / "out.log").read_text() == "dict|INFO|hello\n"
    (tmp_path / "log.yaml").write_text("a: [")
    with pytest.raises(ConfigError, match=r"\(logconfig\) is not YAML: "):
        logs.make(configure(logconfig=str(tmp_path / "log.yaml")))


def test_the_dictionary_beats_the_json_file_beats_the_ini_file(configure: Configure, tmp_path: Path) -> None:
    (tmp_path / "log.ini").write_text(INI)
    (tmp_path / "log.json").write_text(json.dumps(to_file(tmp_path / "json.log")))
    files = {"logconfig": str(tmp_path / "log.ini"), "logconfig_json": str(tmp_path / "log.json")}
    logs.make(configure(**files)).info("one")
    logs.make(configure(**files, logconfig_dict=to_file(tmp_path / "dict.log"))).info("two")
    assert (tmp_path / "json.log").read_text() == "dict|INFO|one\n"
    assert (tmp_path / "dict.log").read_text() == "dict|INFO|two\n"


def test_with_json_lines_the_default_formatter_makes_them_too(
    configure: Configure, capsys: pytest.CaptureFixture[str]
) -> None:
    logs.make(configure(log_format="json", logconfig_dict={"root": {"level": "INFO", "handlers": []}})).info("hello")
    assert json.loads(capsys.readouterr().err)["message"] == "hello"


BAD: list[tuple[dict[str, Any], str]] = [
    ({"logconfig_dict": {"version": 2}}, "logconfig_dict cannot be used: Unsupported version: 2"),
    (
        {"logconfig_dict": {"handlers": {"console": {"class": "no.such.Handler"}}}},
        r"logconfig_dict cannot be used: .*'console'.*: .*no",
    ),
    ({"logconfig_dict": {"handlers": {"f": {"class": "logging.FileHandler", "filename": "/no/x"}}}}, "No such file"),
    ({"logconfig_dict": {"loggers": {"gunicorn.error": {"level": "LOUD"}}}}, "gunicorn.error.*LOUD"),
    ({"logconfig_json": "/no/such.json"}, r"'/no/such.json' \(logconfig_json\) cannot be read: No such file"),
    ({"logconfig": "/no/such.ini"}, r"'/no/such.ini' \(logconfig\) cannot be read: No such file"),
    ({"logconfig_json": "text"}, r"\(logconfig_json\) is not JSON: Expecting value: line 1"),
    ({"logconfig_json": "list"}, r"\(logconfig_json\) must hold an object, not list"),
    ({"logconfig": "text"}, r"\(logconfig\) cannot be used: "),
    ({"logconfig": "half"}, r"\(logconfig\) cannot be used: .*formatters"),
    ({"errorlog": "/no/such/file"}, "errorlog"),
    ({"logger_class": "no_such_module.Logger"}, "logger_class.*No module named 'no_such_module'"),
]


@pytest.mark.parametrize(("settings", "says"), BAD)
def test_a_bad_one_is_a_sentence_and_leaves_the_running_log_as_it_was(
    configure: Configure, tmp_path: Path, settings: dict[str, Any], says: str
) -> None:
    contents = {"text": "[not a log config", "list": "[]", "half": "[loggers]\nkeys=root\n"}
    given = dict(settings)
    for name, value in settings.items():
        if isinstance(value, str) and value in contents:
            (tmp_path / value).write_text(contents[value])
            given[name] = str(tmp_path / value)
    running = logs.make(configure(logconfig_dict=to_file(tmp_path / "running.log"), accesslog=str(tmp_path / "a")))
    handlers = running.error_log.handlers[:]
    with pytest.raises(ConfigError, match=says) as caught:
        logs.make(configure(**given))
    assert "\n" not in str(caught.value)
    assert running.error_log.handlers == handlers
    running.debug("still here")
    running.access_log.info("here too")
    assert (tmp_path / "running.log").read_text() == "dict|DEBUG|still here\n"
    assert (tmp_path / "a").read_text() == "here too\n"


def test_a_new_configuration_takes_the_place_of_the_old(configure: Configure, tmp_path: Path) -> None:
    old = logs.make(configure(logconfig_dict=to_file(tmp_path / "old.log")))
    (replaced,) = old.error_log.handlers
    root = len(logging.root.handlers)
    new = logs.make(configure(errorlog=str(tmp_path / "new.log")))
    new.info("hello")
    logging.getLogger().warning("not shown")
    assert (tmp_path / "old.log").read_text() == ""
    assert "hello" in (tmp_path / "new.log").read_text()
    assert replaced.stream is None  # type: ignore[attr-defined]
    assert len(logging.root.handlers) == root - 1
    assert not new.error_log.propagate


def test_what_others_have_attached_stays(configure: Configure) -> None:
    mine = logging.NullHandler()
    logging.getLogger("gunicorn.error").addHandler(mine)
    try:
        log = logs.make(configure())
        assert mine in log.error_log.handlers
        log.setup(configure(loglevel="debug"))
        assert mine in log.error_log.handlers
        assert len(log.error_log.handlers) == 2
    finally:
        logging.getLogger("gunicorn.error").removeHandler(mine)


def test_reloads_leak_no_descriptor(configure: Configure, tmp_path: Path) -> None:
    config = configure(logconfig_dict=to_file(tmp_path / "d"), errorlog=str(tmp_path / "e"))
    bad = configure(errorlog="/no/such/file")
    logs.make(config)
    gc.collect()  # what other tests have left
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(10):
        logs.make(config)
        with pytest.raises(ConfigError):
            logs.make(bad)
    assert len(os.listdir("/proc/self/fd")) <= before


def test_a_foreign_handler_on_a_full_disk_makes_no_noise(
    configure: Configure, capsys: pytest.CaptureFixture[str]
) -> None:
    log = logs.make(configure(logconfig_dict=to_file(Path("/dev/full"))))
    log.error("lost")
    log.write("lost\n")
    log.flush()
    assert capsys.readouterr() == ("", "")


class TestLoggerClass:
    @pytest.fixture
    def module(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
        (tmp_path / "my_loggers.py").write_text(
            "import logging\n"
            "from gunicorn.glogging import Logger\n"
            "class Mine(Logger):\n"
            "    def setup(self, cfg):\n"
            "        super().setup(cfg)\n"
            "        self._set_handler(self.error_log, cfg.errorlog, logging.Formatter('mine|%(message)s'))\n"
            "class Failing(Logger):\n"
            "    def setup(self, cfg):\n"
            "        super().setup(cfg)\n"
            "        1 / 0\n"
            "class Other: pass\n"
        )
        monkeypatch.syspath_prepend(str(tmp_path))
        monkeypatch.setattr(sys, "meta_path", sys.meta_path[:])
        compat.install()
        monkeypatch.delitem(sys.modules, "my_loggers", raising=False)
        return "my_loggers"

    def test_logger_class_by_name(self, configure: Configure, module: str, capsys: pytest.CaptureFixture[str]) -> None:
        logs.make(configure(logger_class=f"{module}.Mine")).info("hello")
        assert capsys.readouterr().err == "mine|hello\n"

    def test_logger_class_by_class(self, configure: Configure) -> None:
        class Mine(logs.Logger):
            pass

        assert type(logs.make(configure(logger_class=Mine))) is Mine

    @pytest.mark.parametrize("name", ["simple", "gunicorn.glogging.Logger", "tricorn.log.Logger"])
    def test_the_default_has_many_names(self, configure: Configure, name: str) -> None:
        assert type(logs.make(configure(logger_class=name))) is logs.Logger

    @pytest.mark.parametrize(
        ("name", "says"),
        [
            ("my_loggers.Min", "not in its module; did you mean my_loggers.Mine?"),
            ("my_loggers.Other", "expected a subclass of tricorn.log.Logger"),
            ("my_loggers.Failing", "Failing .logger_class. failed: ZeroDivisionError"),
            ("Mine", "must be a dotted name"),
        ],
    )
    def test_invalid_logger_class(
        self, configure: Configure, module: str, name: str, says: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        running = logs.make(configure())
        with pytest.raises(ConfigError, match=says):
            logs.make(configure(logger_class=name, errorlog="/dev/null"))
        running.info("still here")
        assert "still here" in capsys.readouterr().err

    def test_one_that_prepares_the_process(self, configure: Configure) -> None:
        seen: list[str] = []

        class Mine(logs.Logger):
            @classmethod
            def install(cls) -> None:
                seen.append(cls.__name__)

        logs.make(configure(logger_class=Mine))
        assert seen == ["Mine"]


def test_every_worker_pays_only_for_what_is_configured() -> None:
    code = (
        "import sys; from tricorn import log; from tricorn.config.resolve import resolve; log.make(resolve([]));"
        "print([name for name in ('logging.config', 'logging.handlers', 'json', 'datetime') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"
