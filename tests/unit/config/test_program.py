"""Settings as keyword arguments."""

from __future__ import annotations

import pytest
from tricorn.config.load import OBJECT, Sources, load
from tricorn.config.program import read
from tricorn.config.resolve import Layer, resolve
from tricorn.errors import ConfigError


@pytest.mark.parametrize(
    ("given", "settings"),
    [
        ({"workers": 3, "worker_class": "gthread"}, {"workers": 3, "worker_class": "gthread"}),
        ({"keep_alive": 3, "log_level": "WARN"}, {"keepalive": 3, "loglevel": "warning"}),
        ({"timeout_keep_alive": 3, "limit_concurrency": None}, {"keepalive": 3, "worker_connections": 1000}),
        ({"host": "::1", "port": 80}, {"bind": ("[::1]:80",)}),
        ({"port": 80}, {"bind": ("127.0.0.1:80",)}),
        ({"uds": "/run/s", "access_log": True}, {"bind": ("unix:/run/s",), "accesslog": "-"}),
        ({"access_log": False, "proxy_headers": False}, {"accesslog": None, "forwarded_allow_ips": ""}),
        (
            {"proxy_headers": True, "server_header": False},
            {"forwarded_allow_ips": "127.0.0.1,::1", "server_header": ""},
        ),
        ({"headers": [("X-A", "1")], "date_header": False}, {"headers": (("X-A", "1"),), "date_header": False}),
        ({"log_config": {"version": 1}}, {"logconfig_dict": {"version": 1}}),
        (
            {"ws_per_message_deflate": False, "lifespan": "off"},
            {"websocket_compression": False, "asgi_lifespan": "off"},
        ),
        ({"preload_app": True, "bind": ["a:1", "b:2"]}, {"preload_app": True, "bind": ("a:1", "b:2")}),
        (
            {"ssl_ciphers": "HIGH", "ssl_cert_reqs": 2, "ssl_version": 17, "ssl_ca_certs": "ca.pem", "keyfile": None},
            {"ciphers": "HIGH", "cert_reqs": 2, "ca_certs": "ca.pem", "keyfile": None},
        ),
        ({"http": "zttp", "http2": True}, {"http_protocols": ("h2", "h1"), "http2_cleartext": "prior-knowledge"}),
        ({"http2": False}, {"http_protocols": ("h1",), "http2_cleartext": "off"}),
        ({"ssl_ciphers": "TLSv1", "dirty_workers": 2}, {"ciphers": None}),
    ],
)
def test_program_keywords_set_settings(given: dict[str, object], settings: dict[str, object]) -> None:
    layer = read(given)
    config = resolve([layer])
    assert {name: config.value(name) for name in settings} == settings
    assert layer.asked == ()


def test_a_name_that_is_none_is_the_programs_mistake() -> None:
    with pytest.raises(TypeError, match=r"tricorn\.run\(\) has no setting 'worker'; did you mean 'workers'\?"):
        read({"worker": 3})
    with pytest.raises(TypeError, match=r"has no setting 'zzzz'$"):
        read({"zzzz": 3})


def test_a_value_that_cannot_be_is_named_with_its_place() -> None:
    with pytest.raises(ConfigError, match=r"Invalid value for workers: 0 \(from tricorn\.run\(\)\)"):
        resolve([read({"workers": 0})])
    with pytest.raises(ConfigError, match=r"Invalid value for interface \(from tricorn\.run\(\)\): expected one of"):
        read({"interface": "rsgi"})


def test_program_without_an_application() -> None:
    sentences = [asked.sentence for asked in read({"metrics": True, "dirty_apps": ["shop:jobs"]}).asked]
    assert [sentence.startswith("tricorn.run(): ") for sentence in sentences] == [True, True]


class TestLayers:
    def load(self, environ: dict[str, str], given: dict[str, object], cwd: object, **options: object) -> object:
        program = read({"wsgi_app": "main:app", **given})
        return load(Sources((), environ, str(cwd), program, **options)).config  # type: ignore[arg-type]

    def test_the_environment_is_stronger(self, tmp_path: object) -> None:
        environ = {"TRICORN_WORKERS": "5", "TRICORN_CMD_ARGS": "--threads 4", "WEB_CONCURRENCY": "9"}
        given: dict[str, object] = {"workers": 2, "threads": 2}
        config = self.load(environ, given, tmp_path)
        assert (config.workers, config.threads) == (5, 4)  # type: ignore[attr-defined]
        config = self.load(environ, given, tmp_path, reads_environment=False)
        assert (config.workers, config.threads) == (2, 2)  # type: ignore[attr-defined]

    def test_a_file_is_read_if_it_is_named(self, tmp_path: object) -> None:
        path = tmp_path / "gunicorn.conf.py"  # type: ignore[operator]
        path.write_text("workers = 7\ntimeout = 8\n")
        assert self.load({}, {}, tmp_path).workers == 1  # type: ignore[attr-defined]
        config = self.load({}, {"config": "gunicorn.conf.py", "workers": 2}, tmp_path)
        assert (config.workers, config.timeout) == (2, 8)  # type: ignore[attr-defined]

    def test_an_object_cannot_be_reloaded(self, tmp_path: object) -> None:
        with pytest.raises(ConfigError) as caught:
            self.load({}, {"reload": True}, tmp_path, application=print)
        assert str(caught.value) == OBJECT


def test_nothing_is_nothing() -> None:
    assert read({}) == Layer({})
