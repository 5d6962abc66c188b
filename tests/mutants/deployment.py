"""Faults of the files that `tricorn init` prints."""

from __future__ import annotations

from tests.mutants.fault import Fault

INIT = "packages/tricorn-tools/tricorn_tools/init"

DEPLOYMENT = (
    Fault(
        "grace_without_the_delay",
        "a supervisor waits for drain_delay and graceful_timeout before it kills",
        f"{INIT}/service.py",
        "math.ceil(self.config.drain_delay + self.config.graceful_timeout)",
        "math.ceil(self.config.graceful_timeout)",
        ("tests/unit/tricorn_tools/init/test_init_files.py",),
    ),
    Fault(
        "files_replaced",
        "a file that is there is not written over without --force",
        f"{INIT}/command.py",
        "if there and not force:",
        "if False:",
        ("tests/unit/tricorn_tools/init/test_init_command.py",),
    ),
    Fault(
        "secrets_in_files",
        "the values of TRICORN_RAW_ENV do not get into a file",
        f"{INIT}/request.py",
        " if setting.name != SECRET}",
        "}",
        ("tests/unit/tricorn_tools/init/test_init_command.py",),
    ),
    Fault(
        "clients_as_proxies",
        "a proxy does not pass on what a client says in its place",
        f"{INIT}/front_end.py",
        'return [name.title() for name in sorted({*known, "FORWARDED", "X-FORWARDED-BY"})]',
        "return []",
        ("tests/integration/test_init_proxies.py",),
    ),
)
