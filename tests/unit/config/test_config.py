"""The configuration as code that was written for gunicorn reads it."""

from __future__ import annotations

from typing import Any

import pytest
from tricorn.config.config import Config
from tricorn.config.resolve import Layer, Raw, override, resolve
from tricorn.config.validators import Invalid


def configure(**values: object) -> Config:
    return resolve([Layer({name: Raw(value, "a test") for name, value in values.items()})])


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:8000", ("127.0.0.1", 8000)),
        ("HOST", ("host", 8000)),
        (":9000", ("0.0.0.0", 9000)),
        ("[::1]:8001", ("::1", 8001)),
        ("[::1]", ("::1", 8000)),
        ("tcp://h:1", ("h", 1)),
        ("unix:/run/x.sock", "/run/x.sock"),
        ("unix:///run/x.sock", "/run/x.sock"),
        ("unix:relative", "relative"),
        ("unix:@name", "\0name"),
        ("fd://3", 3),
    ],
)
def test_config_bind_addresses(text: str, address: object) -> None:
    assert configure(bind=[text]).address == [address]
    assert configure(bind=[f" {text} "]).address == [address]


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("bind", "a:1,b:2", ["a:1", "b:2"]),
        ("raw_env", ["A=1", "B=x y"], ["A=1", "B=x y"]),
        ("pythonpath", "a,b", "a,b"),
        ("forwarded_allow_ips", "10.0.0.0/8,::1", ["10.0.0.0/8", "::1"]),
        ("forwarded_allow_ips", "*", ["*"]),
        ("trusted_proxy_headers", "X-Forwarded-For, x-forwarded-proto", ["x-forwarded-for", "x-forwarded-proto"]),
        ("trusted_proxy_headers", ["forwarded", "Forwarded"], ["forwarded"]),
        ("trusted_proxy_headers", "", []),
        ("backlog", "64", 64),
        ("workers", 3, 3),
    ],
)
def test_settings_have_gunicorns_types(name: str, given: object, expected: object) -> None:
    assert configure(**{name: given}).settings[name].get() == expected


def test_all_settings_can_be_gone_through() -> None:
    views = configure(workers=3).settings
    assert len(views) == len(list(views)) == len(set(views))
    assert {"workers", "certfile", "admin_bind"} < set(views)
    assert {name: view.value for name, view in views.items()}["workers"] == 3
    assert "nothing" not in views
    with pytest.raises(KeyError):
        views["nothing"]


def test_config_knows_which_settings_are_set() -> None:
    config = configure(workers=1)
    assert not config.is_default("workers")
    assert config.is_default("threads")
    assert config.is_default("pre_request")
    assert not configure(pre_request=lambda worker, req: None).is_default("pre_request")


def test_config_from_environment_variables() -> None:
    assert configure(raw_env=["A=1", "B=x=y"]).env == {"A": "1", "B": "x=y"}


class Custom:
    pass


@pytest.mark.parametrize(
    ("worker_class", "threads", "name"),
    [
        ("sync", 1, "sync"),
        ("sync", 2, "gthread"),
        ("gunicorn.workers.sync.SyncWorker", 2, "gthread"),
        ("gthread", 1, "gthread"),
        ("some.Worker", 2, "some.Worker"),
        (Custom, 2, "Custom"),
    ],
)
def test_the_name_of_the_worker_class(worker_class: Any, threads: int, name: str) -> None:
    assert configure(worker_class=worker_class, threads=threads).worker_class_str == name


def test_classes_of_gunicorns_that_speak_tls_themselves_find_its_options() -> None:
    config: Any = configure()
    assert config.is_ssl is False
    assert config.certfile is None
    config = override(configure(), {"certfile": Raw("c.pem", "a test"), "cert_reqs": Raw(2, "a test")})
    assert config.is_ssl is True
    assert config.ssl_options == {
        "keyfile": None,
        "certfile": "c.pem",
        "ssl_version": None,
        "cert_reqs": 2,
        "ca_certs": None,
        "suppress_ragged_eofs": True,
        "do_handshake_on_connect": False,
        "ciphers": None,
    }


def test_what_is_no_setting_is_an_attribute_error() -> None:
    config: Any = configure()
    with pytest.raises(AttributeError, match="No configuration setting for: nothing"):
        _ = config.nothing
    assert getattr(config, "nothing", 1) == 1


def test_it_cannot_be_changed() -> None:
    config: Any = configure()
    with pytest.raises(AttributeError):
        config.workers = 3
    with pytest.raises(AttributeError):
        config.other = 3


def test_hooks_may_set_what_is_read_from_then_on() -> None:
    config = configure(workers=2)
    config.set("workers", "1")
    assert (config.workers, config.origin("workers"), config.settings["workers"].get()) == (1, "a hook", 1)
    with pytest.raises(AttributeError, match="No configuration setting for: wurkers"):
        config.set("wurkers", 1)
    with pytest.raises(Invalid):
        config.set("workers", "many")


def test_refused_lists_are_nobodys_to_share() -> None:
    config: Any = configure()
    config.dirty_apps.append("x")
    assert configure().settings["dirty_apps"].get() == []


def test_the_default_pre_request_logs(caplog: pytest.LogCaptureFixture) -> None:
    class Log:
        lines: list[str] = []  # noqa: RUF012

        def debug(self, message: str, *arguments: object) -> None:
            self.lines.append(message % arguments)

    class Thing:
        log = Log()
        method, path = "GET", "/x"

    configure().pre_request(Thing(), Thing())
    assert Log.lines == ["GET /x"]
