"""The child's side of a worker, in this process, around a core that only takes notes."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress

import pytest
from tricorn.metrics.scoreboard import Scoreboard
from tricorn.record import replace
from tricorn.workers.base import Worker
from tricorn.workers.messages import BootFailed, Ready, Retire

from tests.harness import groups
from tests.unit.workers.conftest import Arbiter, Core


def test_it_says_ready_before_it_serves_and_closes_after(core: Core, hire: Callable[..., Arbiter]) -> None:
    arbiter = hire()
    core.script = lambda: core.note(f"heard {arbiter.heard()}")
    assert arbiter.worker.live() == 0
    assert core.notes == ["start", "serve", f"heard {[Ready(kind='sync')]}", "close"]


def test_a_hook_that_wants_another_worker_gets_it_when_this_one_serves(
    core: Core, hire: Callable[..., Arbiter]
) -> None:
    def post_worker_init(worker: Worker) -> None:
        worker.alive = False

    arbiter = hire(post_worker_init=post_worker_init)
    core.script = lambda: setattr(arbiter.worker, "alive", False)
    assert arbiter.worker.live() == 0
    assert arbiter.heard() == [Ready(kind="sync"), Retire("the application has set worker.alive to False")], "once"


@pytest.mark.parametrize(
    ("app", "code", "reason"),
    [
        ("life_app:nope", 4, "Failed to find attribute 'nope' in 'life_app'."),
        ("life_broken", 3, "ZeroDivisionError: division by zero"),
        ("life_exits", 3, "SystemExit: 7"),
        ("life_missing", 3, "ModuleNotFoundError: No module named 'life_missing'"),
    ],
)
def test_an_application_that_cannot_be_loaded(
    app: str, code: int, reason: str, core: Core, hire: Callable[..., Arbiter]
) -> None:
    arbiter = hire(app)
    assert arbiter.worker.live() == code
    assert arbiter.heard() == [BootFailed(code, reason)]
    assert core.notes == []


@pytest.mark.parametrize(
    ("name", "notes"),
    [
        ("TERM", ["drain"]),
        ("INT", ["stop"]),
        ("QUIT", ["stop"]),
        ("USR1", ["reopen_logs"]),
        ("HUP", []),
        ("USR2", []),
        ("WINCH", []),
    ],
)
def test_signals_of_a_worker(name: str, notes: list[str], core: Core, hire: Callable[..., Arbiter]) -> None:
    core.script = lambda: in_call(signal.Signals[f"SIG{name}"])
    assert hire().worker.live() == 0
    assert core.notes == ["start", "serve", *notes, "close"]


def in_call(number: signal.Signals) -> None:
    """A signal while the application is called: what that lets out ends the call, and not the core."""
    with suppress(SystemExit):
        signal.raise_signal(number)


@pytest.mark.parametrize("replaced", [False, True])
def test_listeners_of_its_own_refuse_newcomers_unless_others_take_them(
    replaced: bool, core: Core, hire: Callable[..., Arbiter]
) -> None:
    told: list[bool] = []
    worker = hire().worker
    worker.fds = replace(worker.fds, refuse_newcomers=lambda *, none_listens: told.append(none_listens))
    Scoreboard(worker.spec.page).order(replaced=replaced)
    core.script = lambda: signal.raise_signal(signal.SIGTERM)
    assert worker.live() == 0
    assert told == [not replaced]


def test_an_application_that_exits_ends_the_worker(core: Core, hire: Callable[..., Arbiter]) -> None:
    core.script = lambda: sys.exit(0)
    assert hire().worker.live() == 1
    assert core.notes[-1] == "close"


def test_a_core_that_fails_ends_the_worker_with_a_status(core: Core, hire: Callable[..., Arbiter]) -> None:
    def fail() -> None:
        raise OSError("epoll is gone")

    core.script = fail
    assert hire().worker.live() == 1
    assert core.notes[-1] == "close"


class TestThreads:
    def test_each_thread_serves_and_the_main_one_waits(self, core: Core, hire: Callable[..., Arbiter]) -> None:
        served = threading.Barrier(3, action=core.over.set)

        def serve() -> None:
            assert threading.current_thread() is not threading.main_thread()
            served.wait(5)

        core.script = serve
        assert hire(argv="--threads 3", worker_class="gthread").worker.live() == 0
        assert sorted(core.notes) == ["close", "serve", "serve", "serve", "start", "wait"]
        assert core.options["threads"] == 3

    def test_a_thread_that_fails_ends_the_worker_gracefully_and_the_last_one_at_once(
        self, core: Core, hire: Callable[..., Arbiter]
    ) -> None:
        def fail() -> None:
            raise OSError("epoll is gone")

        core.script = fail
        assert hire(argv="--threads 3", worker_class="gthread").worker.live() == 1
        assert [note for note in core.notes if note in {"drain", "stop"}] == ["drain", "drain", "stop"]


def test_what_the_core_is_told(core: Core, hire: Callable[..., Arbiter]) -> None:
    hire(argv="--no-sendfile --body-buffer-size 1M --access-logfile -").worker.live()
    assert core.options["sendfile"] is False
    assert core.options["body_buffer_size"] == 1 << 20
    assert core.options["access_log"] == "-"
    assert core.options["threads"] == 1
    assert core.options["forwarder_headers"] == ["SCRIPT_NAME", "PATH_INFO"]
    assert core.options["server"] == "tricorn"


def test_the_core_is_told_what_may_wait(core: Core, hire: Callable[..., Arbiter]) -> None:
    hire(argv="--queue-limit 5 --queue-timeout 1.5 --queue-order adaptive --max-concurrency 3").worker.live()
    names = ["queue_limit", "queue_timeout", "queue_order", "max_concurrency"]
    assert [core.options[name] for name in names] == [5, 1.5, "adaptive", 3]


def test_a_limit_that_is_measured_has_a_number_of_its_own(core: Core, hire: Callable[..., Arbiter]) -> None:
    hire(argv="--max-concurrency auto").worker.live()
    assert core.options["max_concurrency"] == -1


def test_the_core_knows_when_its_arbiter_dies_and_how_long_it_may_stay(
    core: Core, hire: Callable[..., Arbiter]
) -> None:
    worker = hire(argv="--graceful-timeout 7").worker
    worker.live()
    assert (core.options["life"], core.options["graceful_timeout"]) == (worker.fds.life, 7)


def test_the_core_gets_what_the_workers_share(core: Core, hire: Callable[..., Arbiter]) -> None:
    worker = hire(siblings=True).worker
    worker.fds = replace(worker.fds, channel=(7, 8, 9))
    worker.live()
    assert core.options["channel"] == (7, 8, 9)
    assert core.options["pages"] is worker.spec.pages
    assert core.options["group"] is worker.spec.group


def test_connections_are_handed_over_unless_somebody_forbids_it(hire: Callable[..., Arbiter]) -> None:
    assert hire(siblings=True).worker.spec.hands_over
    assert hire(siblings=False).worker.spec.hands_over
    assert not hire(siblings=True, argv="--no-handover").worker.spec.hands_over


def test_hooks_in_their_order_and_with_their_arguments(core: Core, hire: Callable[..., Arbiter]) -> None:
    def noting(name: str, arity: int) -> Callable[..., None]:
        def one(worker: Worker) -> None:
            core.note(f"{name} booted={worker.booted} alive={worker.alive}")

        def two(server: object, worker: Worker) -> None:
            assert server == "the server"
            one(worker)

        return one if arity == 1 else two

    core.script = lambda: in_call(signal.SIGINT)
    arbiter = hire(
        post_fork=noting("post_fork", 2),
        post_worker_init=noting("post_worker_init", 1),
        worker_int=noting("worker_int", 1),
        worker_exit=noting("worker_exit", 2),
    )
    assert arbiter.worker.live() == 0
    assert core.notes == [
        "post_fork booted=False alive=True",
        "post_worker_init booted=True alive=True",
        "start",
        "serve",
        "worker_int booted=True alive=False",
        "stop",
        "close",
        "worker_exit booted=True alive=False",
    ]


@pytest.mark.parametrize("name", ["post_fork", "post_worker_init"])
def test_a_hook_that_fails_while_it_boots(name: str, core: Core, hire: Callable[..., Arbiter]) -> None:
    def fail(*_: object) -> None:
        raise LookupError("no database")

    arbiter = hire(**{name: (lambda server, worker: fail()) if name == "post_fork" else (lambda worker: fail())})
    assert arbiter.worker.live() == 3
    assert arbiter.heard() == [BootFailed(3, "LookupError: no database")]


@pytest.mark.parametrize("kind", ["ExceptionGroup", "BaseExceptionGroup"])
def test_a_boot_that_fails_with_a_group_is_told_with_its_members(
    kind: str, core: Core, hire: Callable[..., Arbiter]
) -> None:
    def fail(worker: Worker) -> None:
        last = KeyboardInterrupt() if kind.startswith("Base") else ValueError("no port")
        raise getattr(groups, kind)("errors", [OSError("no database"), last])

    arbiter = hire(post_worker_init=fail)
    assert arbiter.worker.live() == 3
    (failed,) = arbiter.heard()
    assert isinstance(failed, BootFailed)
    assert f"{kind}: errors (2 sub-exceptions): OSError: no database; " in failed.reason


def test_a_hook_that_fails_at_the_end_changes_nothing(core: Core, hire: Callable[..., Arbiter]) -> None:
    def fail(server: object, worker: Worker) -> None:
        raise LookupError("too late")

    assert hire(worker_exit=fail).worker.live() == 0


def test_a_traceback_stands_in_for_an_application_when_asked_to(core: Core, hire: Callable[..., Arbiter]) -> None:
    arbiter = hire("life_broken", stand_in=True)
    core.script = lambda: core.note(f"heard {arbiter.heard()}")
    assert arbiter.worker.live() == 0
    assert f"heard {[Ready(stand_in=True, kind='sync')]}" in core.notes
    answers: list[str] = []
    body = b"".join(arbiter.worker.wsgi({}, lambda status, headers: answers.append(status)))
    assert answers == ["500 Internal Server Error"]
    assert b"ZeroDivisionError: division by zero" in body


def test_max_requests_come_with_their_jitter(hire: Callable[..., Arbiter]) -> None:
    found = {hire(argv="--max-requests 10 --max-requests-jitter 3").worker.max_requests for _ in range(100)}
    assert found == {10, 11, 12, 13}
    assert hire().worker.max_requests == sys.maxsize
