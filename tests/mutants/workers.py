"""Faults of the workers, the configuration and the log."""

from __future__ import annotations

from tests.mutants.fault import Fault

PACKAGE = "python/tricorn"
BASE = f"{PACKAGE}/workers/base.py"
NATIVE = f"{PACKAGE}/workers/native.py"

WORKERS = (
    Fault(
        "post_fork_as_root",
        "post_fork runs before the privileges are dropped",
        BASE,
        "        self.cfg.post_fork(self.spec.server, self)\n"
        "        privileges.drop(self.cfg.uid, self.cfg.gid, initgroups=self.cfg.initgroups)\n",
        "        privileges.drop(self.cfg.uid, self.cfg.gid, initgroups=self.cfg.initgroups)\n"
        "        self.cfg.post_fork(self.spec.server, self)\n",
        ("tests/compat/test_hooks.py -k privileges",),
    ),
    Fault(
        "handlers_are_flushed",
        "a worker that leaves flushes its log's handlers",
        BASE,
        "self.log.flush()",
        "pass",
        ("tests/integration/test_logging.py -k still_holds",),
    ),
    Fault(
        "crash_status",
        "a worker that raises does not exit with 0",
        BASE,
        "CRASHED if self.crashed else ExitCode.OK",
        "ExitCode.OK",
        ("tests/integration/test_lifespan.py", "tests/integration/test_signals.py", "tests/unit/workers"),
    ),
    Fault(
        "extra_files",
        "reload_extra_files are watched",
        BASE,
        "watched, excluded = reloader.extra_files(self.cfg),",
        "watched, excluded = [],",
        ("tests/compat/test_settings.py -k reload_extra", "tests/integration/test_reload.py -k extra"),
    ),
    Fault(
        "worker_exit_hook",
        "worker_exit is called",
        BASE,
        "self.cfg.worker_exit(self.spec.server, self)",
        "pass",
        ("tests/compat/test_hooks.py",),
    ),
    Fault(
        "supplementary_groups",
        "a worker that leaves root leaves root's group",
        f"{PACKAGE}/workers/privileges.py",
        "uid != 0 and 0 in os.getgroups()",
        "False",
        ("tests/unit/workers/test_privileges.py",),
    ),
    Fault(
        "group_before_user",
        "the group is changed while that is permitted",
        f"{PACKAGE}/workers/privileges.py",
        "os.setgid(gid)",
        "pass",
        ("tests/unit/workers/test_privileges.py",),
    ),
    Fault(
        "lifespan_shutdown",
        "a lifespan that has begun is ended",
        f"{PACKAGE}/workers/loops.py",
        "if started and not loop.run",
        "if started and not self.quick and not loop.run",
        ("tests/integration/test_lifespan.py",),
    ),
    Fault(
        "background_work",
        "background work is cancelled when the time is over",
        f"{PACKAGE}/workers/loops.py",
        "server.cancel_all()",
        "pass",
        ("tests/integration/test_lifespan.py", "tests/unit/workers"),
    ),
    Fault(
        "close_code",
        "WebSockets hear whether others serve on",
        f"{PACKAGE}/workers/loops.py",
        "SERVICE_RESTART if orders & scoreboard.REPLACED else GOING_AWAY",
        "GOING_AWAY",
        ("tests/integration/test_lifespan.py", "tests/integration/test_websockets.py"),
    ),
    Fault(
        "wrong_setting",
        "body_timeout is body_timeout",
        NATIVE,
        '"body_timeout": config.body_timeout',
        '"body_timeout": config.header_timeout',
        ("tests/unit/workers/test_native.py", "tests/compat/test_settings.py -k body_timeout"),
    ),
    Fault(
        "trusted_addresses",
        "forwarded_allow_ips decides whom the core believes",
        NATIVE,
        '"forwarded_allow_ips": config.forwarded_allow_ips',
        '"forwarded_allow_ips": "*"',
        ("tests/unit/workers/test_native.py", "tests/compat/test_settings.py -k forwarded_allow_ips"),
    ),
    Fault(
        "body_limit",
        "limit_request_body reaches the core",
        NATIVE,
        '"limit_request_body": config.limit_request_body',
        '"limit_request_body": 0',
        ("tests/unit/workers/test_native.py", "tests/compat/test_settings.py -k limit_request_body"),
    ),
    Fault(
        "max_requests",
        "max_requests reaches the core",
        NATIVE,
        "worker.max_requests if config.max_requests else 0",
        "0",
        ("tests/compat/test_settings.py -k max_requests",),
    ),
    Fault(
        "entries_of_gthread",
        "gthread runs as many requests as it has threads",
        NATIVE,
        'config.threads if alias == "gthread" else 1',
        "1",
        ("tests/unit/workers", "tests/integration/test_concurrency.py"),
    ),
    Fault(
        "order_of_layers",
        "the command line wins over the file",
        f"{PACKAGE}/config/resolve.py",
        "written.update(layer.values)",
        "written = {**layer.values, **written}",
        ("tests/unit/config",),
    ),
    Fault(
        "empty_variables",
        "an empty variable is not set",
        f"{PACKAGE}/config/resolve.py",
        "text is not None and not text.strip()",
        "False",
        ("tests/unit/config",),
    ),
    Fault(
        "unavailable_variables",
        "a variable for what is not available is refused",
        f"{PACKAGE}/config/resolve.py",
        "if variable in unavailable:",
        "if False:",
        ("tests/unit/config",),
    ),
    Fault(
        "secrets_in_complaints",
        "a complaint about raw_env does not show its values",
        f"{PACKAGE}/config/resolve.py",
        'name == "raw_env"',
        "False",
        ("tests/unit/config",),
    ),
    Fault(
        "thread_that_dies",
        "a pool that loses a thread is replaced",
        f"{PACKAGE}/workers/gthread.py",
        "core.drain()",
        "pass",
        ("tests/integration/test_signals.py", "tests/integration/test_timeouts.py", "tests/unit/workers"),
    ),
)
