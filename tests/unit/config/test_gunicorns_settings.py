"""gunicorn's settings, and that ours are the same: names, flags, what follows a flag, defaults, arguments of hooks."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import pytest
from tricorn.config import foreign
from tricorn.config.config import Config
from tricorn.config.lookups import Hook
from tricorn.config.registry import BY_NAME, SETTINGS
from tricorn.config.resolve import resolve
from tricorn.config.setting import Action
from tricorn.config.unavailable import UNAVAILABLE, Takes

from tests.harness import with_each

FOUND_OUT = object()
"""A default that depends on where and by whom it is started."""


class Row(NamedTuple):
    name: str
    flags: str
    takes: str
    """What a flag does: value, append, true, false, or maybe: a value that may be left out."""
    default: object


class HookOf(NamedTuple):
    arity: int


# The table of gunicorn 27.0.1, in its order.
TABLE = (
    Row("config", "-c --config", "value", "./gunicorn.conf.py"),
    Row("wsgi_app", "", "", None),
    Row("bind", "-b --bind", "append", ["127.0.0.1:8000"]),
    Row("backlog", "--backlog", "value", 2048),
    Row("workers", "-w --workers", "value", 1),
    Row("worker_class", "-k --worker-class", "value", "sync"),
    Row("threads", "--threads", "value", 1),
    Row("worker_connections", "--worker-connections", "value", 1000),
    Row("max_requests", "--max-requests", "value", 0),
    Row("max_requests_jitter", "--max-requests-jitter", "value", 0),
    Row("timeout", "-t --timeout", "value", 30),
    Row("graceful_timeout", "--graceful-timeout", "value", 30),
    Row("keepalive", "--keep-alive", "value", 2),
    Row("limit_request_line", "--limit-request-line", "value", 4094),
    Row("limit_request_fields", "--limit-request-fields", "value", 100),
    Row("limit_request_field_size", "--limit-request-field_size", "value", 8190),
    Row("reload", "--reload", "true", False),
    Row("reload_engine", "--reload-engine", "value", "auto"),
    Row("reload_extra_files", "--reload-extra-file", "append", []),
    Row("spew", "--spew", "true", False),
    Row("check_config", "--check-config", "true", False),
    Row("print_config", "--print-config", "true", False),
    Row("preload_app", "--preload", "true", False),
    Row("sendfile", "--no-sendfile", "false", None),
    Row("reuse_port", "--reuse-port", "true", False),
    Row("chdir", "--chdir", "value", FOUND_OUT),
    Row("daemon", "-D --daemon", "true", False),
    Row("raw_env", "-e --env", "append", []),
    Row("pidfile", "-p --pid", "value", None),
    Row("worker_tmp_dir", "--worker-tmp-dir", "value", None),
    Row("user", "-u --user", "value", FOUND_OUT),
    Row("group", "-g --group", "value", FOUND_OUT),
    Row("umask", "-m --umask", "value", 0),
    Row("initgroups", "--initgroups", "true", False),
    Row("tmp_upload_dir", "", "", None),
    Row(
        "secure_scheme_headers",
        "",
        "",
        {"X-FORWARDED-PROTOCOL": "ssl", "X-FORWARDED-PROTO": "https", "X-FORWARDED-SSL": "on"},
    ),
    Row("forwarded_allow_ips", "--forwarded-allow-ips", "value", ["127.0.0.1", "::1"]),
    Row("accesslog", "--access-logfile", "value", None),
    Row("disable_redirect_access_to_syslog", "--disable-redirect-access-to-syslog", "true", False),
    Row(
        "access_log_format",
        "--access-logformat",
        "value",
        '%(h)s %(l)s %(u)s %(t)s "%(r)s" %(s)s %(b)s "%(f)s" "%(a)s"',
    ),
    Row("errorlog", "--error-logfile --log-file", "value", "-"),
    Row("loglevel", "--log-level", "value", "info"),
    Row("capture_output", "--capture-output", "true", False),
    Row("logger_class", "--logger-class", "value", "gunicorn.glogging.Logger"),
    Row("logconfig", "--log-config", "value", None),
    Row("logconfig_dict", "", "", {}),
    Row("logconfig_json", "--log-config-json", "value", None),
    Row("syslog_addr", "--log-syslog-to", "value", "udp://localhost:514"),
    Row("syslog", "--log-syslog", "true", False),
    Row("syslog_prefix", "--log-syslog-prefix", "value", None),
    Row("syslog_facility", "--log-syslog-facility", "value", "user"),
    Row("enable_stdio_inheritance", "-R --enable-stdio-inheritance", "true", False),
    Row("statsd_host", "--statsd-host", "value", None),
    Row("dogstatsd_tags", "--dogstatsd-tags", "value", ""),
    Row("statsd_prefix", "--statsd-prefix", "value", ""),
    Row("enable_backlog_metric", "--enable-backlog-metric", "true", False),
    Row("proc_name", "-n --name", "value", None),
    Row("default_proc_name", "", "", "gunicorn"),
    Row("pythonpath", "--pythonpath", "value", None),
    Row("paste", "--paste --paster", "value", None),
    Row("on_starting", "", "", HookOf(1)),
    Row("on_reload", "", "", HookOf(1)),
    Row("when_ready", "", "", HookOf(1)),
    Row("pre_fork", "", "", HookOf(2)),
    Row("post_fork", "", "", HookOf(2)),
    Row("post_worker_init", "", "", HookOf(1)),
    Row("worker_int", "", "", HookOf(1)),
    Row("worker_abort", "", "", HookOf(1)),
    Row("pre_exec", "", "", HookOf(1)),
    Row("pre_request", "", "", HookOf(2)),
    Row("post_request", "", "", HookOf(4)),
    Row("child_exit", "", "", HookOf(2)),
    Row("worker_exit", "", "", HookOf(2)),
    Row("nworkers_changed", "", "", HookOf(3)),
    Row("on_exit", "", "", HookOf(1)),
    Row("ssl_context", "", "", HookOf(2)),
    Row("proxy_protocol", "--proxy-protocol", "maybe", "off"),
    Row("proxy_allow_ips", "--proxy-allow-from", "value", ["127.0.0.1", "::1"]),
    Row("protocol", "--protocol", "value", "http"),
    Row("uwsgi_allow_ips", "--uwsgi-allow-from", "value", ["127.0.0.1", "::1"]),
    Row("keyfile", "--keyfile", "value", None),
    Row("certfile", "--certfile", "value", None),
    Row("ssl_version", "--ssl-version", "value", FOUND_OUT),
    Row("cert_reqs", "--cert-reqs", "value", 0),
    Row("ca_certs", "--ca-certs", "value", None),
    Row("suppress_ragged_eofs", "--suppress-ragged-eofs", "true", True),
    Row("do_handshake_on_connect", "--do-handshake-on-connect", "true", False),
    Row("ciphers", "--ciphers", "value", None),
    Row("http_protocols", "--http-protocols", "value", ["h1"]),
    Row("http2_cleartext", "--http2-cleartext", "value", "off"),
    Row("http2_max_concurrent_streams", "--http2-max-concurrent-streams", "value", 100),
    Row("http2_initial_window_size", "--http2-initial-window-size", "value", 65535),
    Row("http2_max_frame_size", "--http2-max-frame-size", "value", 16384),
    Row("http2_max_header_list_size", "--http2-max-header-list-size", "value", 65536),
    Row("raw_paste_global_conf", "--paste-global", "append", []),
    Row("permit_obsolete_folding", "--permit-obsolete-folding", "true", False),
    Row("strip_header_spaces", "--strip-header-spaces", "true", False),
    Row("permit_unconventional_http_method", "--permit-unconventional-http-method", "true", False),
    Row("permit_unconventional_http_version", "--permit-unconventional-http-version", "true", False),
    Row("casefold_http_method", "--casefold-http-method", "true", False),
    Row("forwarder_headers", "--forwarder-headers", "value", ["SCRIPT_NAME", "PATH_INFO"]),
    Row("header_map", "--header-map", "value", "drop"),
    Row("asgi_loop", "--asgi-loop", "value", "auto"),
    Row("asgi_lifespan", "--asgi-lifespan", "value", "auto"),
    Row("asgi_disconnect_grace_period", "--asgi-disconnect-grace-period", "value", 3),
    Row("websocket_max_message_size", "--websocket-max-message-size", "value", 16777216),
    Row("http_parser", "--http-parser", "value", "auto"),
    Row("root_path", "--root-path", "value", ""),
    Row("dirty_apps", "--dirty-app", "append", []),
    Row("dirty_workers", "--dirty-workers", "value", 0),
    Row("dirty_timeout", "--dirty-timeout", "value", 300),
    Row("dirty_threads", "--dirty-threads", "value", 1),
    Row("dirty_graceful_timeout", "--dirty-graceful-timeout", "value", 30),
    Row("on_dirty_starting", "", "", HookOf(1)),
    Row("dirty_post_fork", "", "", HookOf(2)),
    Row("dirty_worker_init", "", "", HookOf(1)),
    Row("dirty_worker_exit", "", "", HookOf(2)),
    Row("control_socket", "--control-socket", "value", FOUND_OUT),
    Row("control_socket_mode", "--control-socket-mode", "value", 384),
    Row("control_socket_disable", "--no-control-socket", "true", False),
)

BY_GUNICORN = {row.name: row for row in TABLE}
REFUSED = {record.name: record for record in UNAVAILABLE}
HERE = {name: row for name, row in BY_GUNICORN.items() if name in BY_NAME}
NOT_HERE = {name: row for name, row in BY_GUNICORN.items() if name in REFUSED}

# Ours differ on purpose.
OTHER_DEFAULTS = {
    "worker_class": "auto",  # for what its default serves it is the same
    "logger_class": "tricorn.log.Logger",
    "default_proc_name": "tricorn",
    "sendfile": True,  # None means the same there
    "control_socket": "auto",
    "chdir": None,
    "user": os.geteuid(),
    "group": os.getegid(),
}

ACTIONS = {Action.STORE: "value", Action.APPEND: "append", Action.SET: "true", Action.UNSET: "false"}
TAKES = {
    "value": Takes.VALUE,
    "append": Takes.VALUE,
    "true": Takes.NOTHING,
    "false": Takes.NOTHING,
    "maybe": Takes.MAYBE,
    "": Takes.VALUE,
}


@pytest.fixture(scope="module")
def config() -> Config:
    return resolve([])


@with_each("row", BY_GUNICORN)
def test_every_setting_of_gunicorns_is_known(row: Row) -> None:
    assert (row.name in BY_NAME) != (row.name in REFUSED), "either there or refused in a sentence"


class TestThere:
    @with_each("row", HERE)
    def test_it_has_gunicorns_flags(self, row: Row) -> None:
        setting = BY_NAME[row.name]
        assert " ".join(setting.flags) == " ".join((row.flags, *SECOND_NAMES.get(row.name, ()))).strip()
        takes = "maybe" if setting.bare is not None else ACTIONS[setting.action]
        assert not row.flags or takes == row.takes

    @with_each("row", HERE)
    def test_it_has_gunicorns_default(self, row: Row) -> None:
        setting = BY_NAME[row.name]
        if isinstance(row.default, HookOf):
            assert isinstance(setting.kind, Hook)
            assert setting.kind.arity == row.default.arity
        else:
            expected = OTHER_DEFAULTS.get(row.name, row.default)
            assert expected is not FOUND_OUT
            assert foreign.as_gunicorn(row.name, setting.default) == expected

    @with_each("row", HERE)
    def test_it_is_not_called_our_own(self, row: Row) -> None:
        assert not BY_NAME[row.name].own

    @with_each("row", HERE)
    def test_code_written_for_gunicorn_can_read_it(self, row: Row, config: Config) -> None:
        view = config.settings[row.name]
        assert (view.name, view.get()) == (row.name, view.value)
        assert not isinstance(view.value, tuple), "gunicorn has lists"


class TestRefused:
    @with_each("row", NOT_HERE)
    def test_its_flags_are_recognised_with_what_follows_them(self, row: Row) -> None:
        record = REFUSED[row.name]
        assert " ".join(record.flags) == row.flags
        assert record.takes is TAKES[row.takes]

    @with_each("row", NOT_HERE)
    def test_code_written_for_gunicorn_reads_the_default(self, row: Row, config: Config) -> None:
        value: Any = getattr(config, row.name)
        assert config.settings[row.name].get() == value
        if row.default is not FOUND_OUT and not isinstance(row.default, HookOf):
            assert value == row.default


@with_each("setting", {one.name: one for one in SETTINGS if one.name not in BY_GUNICORN})
def test_every_other_setting_says_that_it_is_our_own(setting: Any) -> None:
    assert setting.own


SECOND_NAMES = {
    "limit_request_field_size": ("--limit-request-field-size",),
    "log_format": ("--log-style",),
    "preload_app": ("--mold",),
}
"""Other names of a flag: what other tools call it, and what users write in its place."""


def test_ours_are_one_flag_each_spelt_like_the_setting() -> None:
    for setting in SETTINGS:
        if setting.own and not isinstance(setting.kind, Hook):
            off = "no-" if setting.action is Action.UNSET else ""
            name = setting.name.removesuffix("s") if setting.action is Action.APPEND else setting.name
            first = f"--{off}{name.replace('_', '-')}"
            assert setting.flags == (first, *SECOND_NAMES.get(setting.name, ()))
