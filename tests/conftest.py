"""Servers shared by all tests of a configuration: starting one per test would take most of the time."""

from __future__ import annotations

import gc
import signal
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import cache, cached_property
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests import skips
from tests.harness import REFERENCE, Server
from tests.harness import server as servers
from tests.harness.certificates import Authority, Issued
from tests.lanes import lanes

TESTS = Path(__file__).parent
AnyReport = TypeVar("AnyReport", pytest.CollectReport, pytest.TestReport)
LONGEST_FIRST = (
    "conformance/wsgi_pep3333",
    "conformance/rfc9112",
    "integration/test_hand_over_faults.py",
    "integration/test_loans.py",
    "integration/test_loop_disconnects.py",
    "integration/test_timeouts.py",
    "integration/drivers/test_postgres.py",
    "integration/test_patching.py",
    "compat/test_settings.py",
    "integration/test_signals.py",
    "integration/test_reload.py",
    "integration/drivers/test_siblings.py",
    "attacks/test_deadlines.py",
    "integration/test_watch.py",
    "integration/test_one_queue.py",
    "integration/test_forks.py",
    "integration/test_lifespan.py",
    "integration/test_progress.py",
    "integration/test_log_files.py",
    "integration/test_pauses.py",
    "integration/test_green_patching.py",
    "attacks/test_slow_clients.py",
    "integration/test_green_promises.py",
    "integration/test_configuration.py",
    "integration/test_response_buffering.py",
    "integration/test_boot.py",
    "integration/test_request_buffering.py",
    "integration/test_logging.py",
    "frameworks/test_frameworks.py",
    "frameworks/test_aiohttp.py",
    "examples/test_work.py",
    "compat/test_hooks.py",
    "conformance/policy/test_policy.py",
)
"""Files, and rooms that are `SHARING`, by the time they took (`--durations=0`), each more than 40 seconds. They begin
first, so that a run does not end with one of them while the other processes have nothing to do. Then come these suites,
then the rest."""
STARTED_AFRESH = frozenset(
    (
        "compat/test_configs.py",
        "examples/test_work.py",
        "integration/test_boot.py",
        "integration/test_configuration.py",
        "integration/test_systemd.py",
    )
)
"""Files that are about the start of a server: theirs have an interpreter each. Others are forked from one that has
imported what the arbiter imports (`tests/harness/forkserver.py`)."""
SHARING = {
    "conformance/wsgi_pep3333": "wsgi",
    "conformance/rfc9110": "http",
    "conformance/rfc9112": "http",
    "conformance/asgi3": "asgi",
    "conformance/rfc6455": "websockets",
    "conformance/rfc7692": "websockets",
    "conformance/asgi_websocket": "websockets",
}
"""Rooms of many small files that ask the same servers: one process has those of a name, and starts each server once."""
SUITES = ("integration", "compat", "frameworks", "examples", "attacks")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "beyond_reference(why): tricorn promises more here than the server it replaces")
    config.addinivalue_line("markers", "needs_cpu: about processor time, so it runs after the others (tests/lanes.py)")
    config.addinivalue_line("markers", "nightly: left to `make test-all` (tests/lanes.py)")
    # A shell has its background jobs ignore it, and programs that tests start would do so, too.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Thousands of tests have a million objects: none is garbage, now or later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """`--dist loadfile`, which gives each file to one process, for the rooms that share as well."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class LoadRoomScheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = super()._split_scope(nodeid)
            return SHARING.get(_room(file.removeprefix("tests/")), file)

    return LoadRoomScheduling(config, log)


@pytest.hookimpl(tryfirst=True)  # before `-m` chooses
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: _place(str(item.path)))
    for item in items:
        call = getattr(item, "callspec", None)
        parameters, identifier = (call.params, call.id) if call else ({}, "")
        for mark in lanes(item.path.relative_to(TESTS).as_posix(), parameters, identifier):
            item.add_marker(mark)
    for item in items if REFERENCE else ():
        if promise := item.get_closest_marker("beyond_reference"):
            item.add_marker(pytest.mark.skip(reason=f"the reference server: {promise.args[0]}"))


@cache
def _place(file: str) -> tuple[int, int]:
    path = Path(file).relative_to(TESTS)
    name, suite = path.as_posix(), path.parts[0]
    if name not in LONGEST_FIRST:
        name = _room(name)
    return (
        LONGEST_FIRST.index(name) if name in LONGEST_FIRST else len(LONGEST_FIRST),
        SUITES.index(suite) if suite in SUITES else len(SUITES),
    )


def _room(file: str) -> str:
    return file.rpartition("/")[0]


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    return _held_to_the_list((yield))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    return _held_to_the_list((yield))


def _held_to_the_list(report: AnyReport) -> AnyReport:
    """A skip that tests/skips.py does not allow is a failure: of the test, or of the module that asked for it."""
    if report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        reason = reason.removeprefix("Skipped: ")
        if not skips.allowed(reason):
            report.outcome = "failed"
            report.longrepr = f"This skip is not on the list of tests/skips.py: {reason}"
    return report


@pytest.fixture(autouse=True, scope="module")
def _interpreters(request: pytest.FixtureRequest) -> None:
    servers.always_fresh = request.path.relative_to(TESTS).as_posix() in STARTED_AFRESH


class Pool:
    """One server per configuration, started when first asked for."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.stack = ExitStack()
        """Is left when the servers stop."""
        self._servers: dict[str, Server] = {}

    @cached_property
    def authority(self) -> Authority:
        """Has signed the certificates of its servers over TLS."""
        return Authority(self._directory)

    @cached_property
    def issued(self) -> Issued:
        """The certificate for all of them."""
        return self.authority.issue("server")

    def get(self, app: str = "gallery:application", **options: Any) -> Server:
        key = repr((app, sorted(options.items())))
        server = self._servers.get(key)
        if server is not None and server.process.poll() is not None:
            # The test that brought it down has failed already; the others are owed a server of their own.
            server.stop(check=False)
            server = None
        if server is None:
            server = self._servers[key] = Server(app, **options)
            try:
                server.start()
            except BaseException:
                del self._servers[key]
                raise
        return server

    def stop(self) -> list[str]:
        """Stops all at the same time; what they left behind."""
        self.stack.close()
        with ThreadPoolExecutor(max(1, len(self._servers))) as threads:
            complaints = threads.map(_complaint, self._servers.keys(), self._servers.values())
            return [complaint for complaint in complaints if complaint]


def _complaint(key: str, server: Server) -> str:
    try:
        server.stop()
    except (AssertionError, OSError) as error:  # the others are to be stopped all the same
        return f"{key}: {error}"
    return ""


@pytest.fixture(scope="session")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pool]:
    pool = Pool(tmp_path_factory.mktemp("pool"))
    yield pool
    complaints = pool.stop()
    assert not complaints, "\n".join(complaints)
