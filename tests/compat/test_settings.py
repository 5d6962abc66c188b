"""Every setting, at a value that is not its default, by an effect that is seen from outside.

`TABLE` has an entry for each record there is; a record without one fails `test_the_table_is_complete`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.compat.effects import (
    collectors,
    compression,
    debugging,
    doctor,
    event_loops,
    http2,
    logs,
    own,
    processes,
    queueing,
    requests,
    tls,
)
from tests.compat.effects.hooks import HOOKS, hook
from tests.compat.effects.shared import MAKERS, Servers
from tests.harness import REFERENCE

BEYOND = {
    "tmp_upload_dir": "nothing is ever written there",
    "worker_tmp_dir": "what it writes there is unlinked at once",
    "control_socket_disable": "the suite always gives it",
    "default_proc_name": "an internal of it",
    "limit_request_field_size": "0 is not unlimited, and the error differs",
    "timeout": "it is no timeout of a request",
    "sendfile": "strace would be needed: its copies look the same",
    "print_config": "it prints Python representations",
    "keepalive": "its sync workers have none",
    "keyfile": "it says so with a traceback",
    "ciphers": "it says nothing of what OpenSSL has not",
    **dict.fromkeys(
        ("http2_max_concurrent_streams", "http2_initial_window_size", "http2_max_header_list_size"),
        "a second SETTINGS frame of its has the defaults again",
    ),
    **dict.fromkeys(("statsd_datagram", "statsd_extended", "syslog_format"), "it has no such setting"),
}

Effect = Callable[..., None]
"""Its parameters are the directory of the test, and servers of `MAKERS`."""

OURS = (compression, doctor, own, queueing)
MODULES = (processes, event_loops, requests, logs, collectors, debugging, tls, http2, *OURS)
TABLE: dict[str, Effect] = {
    name.removeprefix("sees_"): effect
    for module in MODULES
    for name, effect in vars(module).items()
    if name.startswith("sees_")
}
TABLE |= {name: hook(name) for name in HOOKS}


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    running = Servers()
    yield running
    running.stop()


@pytest.mark.parametrize("name", TABLE)
def test_setting_has_its_effect(name: str, tmp_path: Path, servers: Servers) -> None:
    if REFERENCE and (
        name in (*BEYOND, *event_loops.OWN, *tls.OWN, *http2.OWN)
        or any(f"sees_{name}" in vars(module) for module in OURS)
    ):
        pytest.skip(f"the reference server: {BEYOND.get(name, 'it has no such setting')}")
    wanted = inspect.signature(TABLE[name]).parameters
    sites = {server: servers.get(server) for server in MAKERS if server in wanted}
    given = {"directory": tmp_path} if "directory" in wanted else {}
    try:
        TABLE[name](**given, **sites)
    except Exception:
        for server in sites:
            servers.drop(server)
        raise


@pytest.mark.beyond_reference("it is about our records")
def test_the_table_is_complete() -> None:
    from tricorn.config.registry import SETTINGS

    names = {setting.name for setting in SETTINGS}
    assert names - set(TABLE) == set(), "settings without an observed effect"
    assert set(TABLE) - names == set(), "effects of settings there are not"
