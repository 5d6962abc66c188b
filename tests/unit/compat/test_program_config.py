"""The configuration that programs fill: `gunicorn.config.Config`."""

from __future__ import annotations

import pytest
from tricorn.compat.gunicorn.config import Config
from tricorn.config.load import Sources, load
from tricorn.config.resolve import resolve
from tricorn.errors import ConfigError


@pytest.fixture
def cfg(monkeypatch: pytest.MonkeyPatch) -> Config:
    for name in ("PORT", "WEB_CONCURRENCY", "GUNICORN_CMD_ARGS", "TRICORN_WORKERS"):
        monkeypatch.delenv(name, raising=False)
    return Config("%(prog)s [OPTIONS]", prog="shop")


def test_what_is_set_has_gunicorns_types(cfg: Config) -> None:
    cfg.set("bind", "127.0.0.1:90,unix:/s")
    cfg.set("workers", "3")
    assert cfg.settings["bind"].get() == ["127.0.0.1:90", "unix:/s"]
    assert cfg.settings["workers"].value == cfg.workers == 3
    assert cfg.address == [("127.0.0.1", 90), "/s"]
    assert cfg.settings["workers"].default == 1
    assert cfg.settings["workers"].cli == ["-w", "--workers"]


def test_program_config_with_an_unknown_setting(cfg: Config) -> None:
    with pytest.raises(AttributeError, match="No configuration setting for: wurkers"):
        cfg.set("wurkers", 1)
    with pytest.raises(AttributeError, match="No configuration setting for: wurkers"):
        cfg.wurkers
    with pytest.raises(AttributeError, match="Invalid access"):
        cfg.workers = 2


def test_program_config_with_an_invalid_value(cfg: Config) -> None:
    with pytest.raises(ValueError, match="Invalid value for workers: 'many'"):
        cfg.set("workers", "many")
    cfg.set("workers", 4)
    cfg.set("workers", None)
    assert cfg.workers == 1


def test_what_is_not_available_may_be_told_that_it_is_not_wanted(cfg: Config) -> None:
    cfg.set("dirty_apps", [])
    assert cfg.settings["dirty_apps"].get() == []
    cfg.set("dirty_apps", ["shop:jobs"])
    with pytest.raises(ConfigError, match="dirty_apps"):
        cfg.validate()
    cfg.set("unavailable", "warn")
    cfg.validate()
    (warning,) = cfg.loaded().warnings
    assert "dirty_apps is not available" in warning


def test_the_server_gets_what_was_set_and_the_variables_of_the_platform(
    cfg: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    cfg.env_orig |= {"WEB_CONCURRENCY": "5", "TRICORN_TIMEOUT": "7"}
    cfg.set("threads", 2)
    config = cfg.loaded().config
    assert (config.workers, config.threads, config.timeout) == (5, 2, 7)
    assert config.origin("threads") == "the program"


def test_what_hooks_get_is_an_instance_of_it() -> None:
    assert isinstance(resolve([]), Config)


def test_the_parser_has_the_programs_name(cfg: Config) -> None:
    assert cfg.parser().format_usage() == "usage: shop [OPTIONS]\n"
    cfg.env_orig["GUNICORN_CMD_ARGS"] = "-w 3 --reload"
    assert cfg.get_cmd_args_from_env() == ["-w", "3", "--reload"]


def test_what_a_program_sets_is_stronger_than_what_was_read(cfg: Config) -> None:
    cfg.take(load(Sources(("-w", "3", "--threads", "2"), {}, cfg.directory), needs_application=False))
    assert (cfg.workers, cfg.threads) == (3, 2)
    cfg.set("workers", 5)
    assert (cfg.workers, cfg.threads, cfg.loaded().config.workers) == (5, 2, 5)
