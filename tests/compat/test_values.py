"""Values and companions that gunicorn takes: a server with them serves."""

from __future__ import annotations

import pytest

from tests.harness import REFERENCE, Site, until

LINES = {
    "a_level_in_capitals": "loglevel = 'WARN'",
    "a_keepalive_of_days": "keepalive = 1000000",
    "no_threads": "threads = 0",
    "no_backlog": "backlog = 0",
    "an_old_default": "proxy_allow_ips = '127.0.0.1'",
    "anybody_may_send_proxy_lines": "proxy_allow_ips = '*'",
    "a_hook_of_tls": "def ssl_context(config, default_ssl_context_factory): return default_ssl_context_factory()",
    "settings_of_tls": "ciphers = 'HIGH'\ncert_reqs = 2\ndo_handshake_on_connect = True\nca_certs = '/nonexistent'",
    "settings_of_statsd": "statsd_prefix = 'shop'\ndogstatsd_tags = 'a:b'",
    "settings_of_syslog": "syslog_prefix = 'shop'\nsyslog_facility = 'local0'",
    "settings_of_dirty_arbiters": "dirty_timeout = 10\ndirty_threads = 2\ndef dirty_worker_init(worker): pass",
    "atoms_that_do_not_exist": "accesslog = '-'\naccess_log_format = '<%(zz)s %(m)s>'",
}


@pytest.mark.parametrize("name", LINES)
def test_a_server_with_values_of_gunicorn_serves(name: str) -> None:
    # gunicorn's own lines about its boot are information, and one of the rows leaves them out.
    with Site(LINES[name] + "\n", wait=False) as server:
        if "WARN" not in LINES[name]:
            server.wait_ready()
        else:
            until(server._accepts, "the server accepts connections")
        assert server.get("/hello").status == 200
        if "zz" in LINES[name]:
            server.out.wait("^<- GET>$")
            if not REFERENCE:
                server.log.wait(r"\[WARNING\] access_log_format \(from .*conf\.py:\d+\): unknown atoms are logged as -")
