"""confluent-kafka: flush, poll, consume and what else waits for a broker is called by a thread.

librdkafka calls back on the thread that polls. What the application gives it is called by the greenlet that polls:
delivery reports, `error_cb`, `stats_cb`, rebalances. They are done when `flush` or `poll` returns, as ever.

A producer takes calls of several threads at once, so that flushes wait side by side. A consumer's are made one by one.
`poll(0)` and its like never wait, and are made as they stand.

librdkafka's flush waits until the queue is empty. Where requests go on producing meanwhile it never may be, and each
flush waits for the messages of all. `Outstanding` counts what was produced before a flush, which returns when that is
delivered: what flush promises, and as soon as one alone would.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tricorn.unpatched import _thread, time
from tricorn_green import offload as offloading
from tricorn_green.cures.replace import Waits, always, in_callbacks, subclass, unless_zero
from tricorn_green.offload import How, brought

if TYPE_CHECKING:
    from tricorn_green.drivers.records import Ground

CALLBACKS = ("callback", "error_cb", "on_commit", "on_delivery", "oauth_cb", "stats_cb", "throttle_cb")
"""Callbacks in configurations and arguments of produce()."""
REBALANCE = ("on_assign", "on_lost", "on_revoke")
DELIVERY_PLACES = (4, 5)
"""The arguments `callback` and `on_delivery` of produce()."""


def _only_if(name: str, *, default: bool, is_waiting: bool) -> Waits:
    def waits(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        return bool(kwargs.get(name, default)) is is_waiting

    return waits


PRODUCER = {
    **always(
        "abort_transaction", "close", "commit_transaction", "init_transactions", "list_topics",
        "send_offsets_to_transaction", "cluster_id", "__exit__",
    ),
    "poll": unless_zero(0),
}  # fmt: skip
CONSUMER = {
    **always("close", "committed", "list_topics", "offsets_for_times", "cluster_id", "unsubscribe", "__exit__"),
    "poll": unless_zero(0),
    "consume": unless_zero(1),
    "seek": None,
    "commit": _only_if("asynchronous", default=True, is_waiting=False),
    "get_watermark_offsets": _only_if("cached", default=False, is_waiting=False),
}
CONSUMER_IN_CALLBACKS = (
    "assign", "assignment", "incremental_assign", "incremental_unassign", "memberid", "pause", "position", "resume",
    "store_offsets", "unassign",
)  # fmt: skip
"""librdkafka waits for a rebalance until these are called, by the thread that it called back on."""
SHARE_CONSUMER = {**always("close", "commit", "unsubscribe", "__exit__"), "poll": unless_zero(0)}


def apply(cimpl: Any, _: Ground) -> None:
    """Treats the module in C, from which the others of the package take these names."""
    _replace(
        cimpl, "Producer", PRODUCER, How(), {"produce": _produce, "produce_batch": _produce_batch, "flush": _flush}
    )
    _replace(cimpl, "Consumer", CONSUMER, How(serial=True), {"subscribe": _subscribe})
    _replace(cimpl, "ShareConsumer", SHARE_CONSUMER, How(serial=True), {})
    _replace(cimpl, "_AdminClientImpl", {**always("list_topics"), "poll": unless_zero(0)}, How(), {})


Make = Callable[[Callable[..., Any]], Callable[..., Any]]


def _replace(cimpl: Any, name: str, methods: Mapping[str, Waits | None], how: How, more: Mapping[str, Make]) -> None:
    original = getattr(cimpl, name, None)
    if original is None or getattr(original, "__tricorn__", False):
        return
    names = {each: make(getattr(original, each)) for each, make in more.items() if hasattr(original, each)}
    if how.serial:
        names |= in_callbacks(original, how, *CONSUMER_IN_CALLBACKS)
    setattr(cimpl, name, subclass(original, methods, how, {"__init__": _init(original), **names}))


def _init(original: Any) -> Callable[..., None]:
    plain = original.__init__

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        self._tricorn_outstanding = Outstanding([*(each for each in args if isinstance(each, dict)), kwargs])
        plain(self, *(_configured(each) if isinstance(each, dict) else each for each in args), **_configured(kwargs))

    return __init__


def _configured(given: dict[str, Any]) -> dict[str, Any]:
    """A configuration whose callbacks are called where the application is."""
    made = {}
    for key, value in given.items():
        if key in CALLBACKS and callable(value):
            made[key] = brought(value)
        elif key == "logger" and value is not None:
            made[key] = _Logger(value)
        else:
            made[key] = _configured(value) if isinstance(value, dict) else value
    return made


class _Logger:
    """Handlers of logs have locks, which are greenlets'."""

    def __init__(self, logger: Any) -> None:
        self._logger = logger
        self.log = brought(logger.log)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._logger, name)


def _with_brought(kwargs: dict[str, Any], *names: str) -> dict[str, Any]:
    for name in names:
        if callable(kwargs.get(name)):
            kwargs[name] = brought(kwargs[name])
    return kwargs


class Outstanding:
    """Messages of a producer that are not delivered yet, by the epoch in which they were produced.

    A flush ends an epoch, and waits for all messages of it and of those before.
    """

    def __init__(self, configurations: Sequence[dict[str, Any]]) -> None:
        merged = {key: value for each in configurations for key, value in each.items()}
        self.report: Callable[..., Any] | None = merged.get("on_delivery")
        """Callback for messages that have none of their own."""
        # Without a report of each message, or with messages that were not counted, only librdkafka knows.
        self.counts = str(merged.get("delivery.report.only.error", "false")).lower() != "true"
        self._lock = _thread.allocate_lock()
        self._epoch = 0
        self._left = {0: 0}

    def produced(self, callback: Callable[..., Any] | None) -> tuple[Callable[..., Any], Callable[[], None]]:
        """The callback for a message that is being produced, and what to call if it cannot be."""
        with self._lock:
            epoch = self._epoch
            self._left[epoch] += 1
        report = self.report if callback is None else callback
        visit = None if report is None else brought(report)

        def over() -> None:
            with self._lock:
                self._left[epoch] -= 1

        def delivered(error: Any, message: Any) -> None:
            try:
                if visit is not None:
                    visit(error, message)
            finally:
                over()

        return delivered, over

    def end_epoch(self) -> int:
        with self._lock:
            ended, self._epoch = self._epoch, self._epoch + 1
            self._left = {epoch: left for epoch, left in self._left.items() if left}
            self._left[self._epoch] = 0
        return ended

    def is_through(self, epoch: int) -> bool:
        with self._lock:
            return not any(left for each, left in self._left.items() if each <= epoch)


def _flush(plain: Callable[..., Any]) -> Callable[..., Any]:
    how = How(name="Producer.flush")

    def in_steps(self: Any, timeout: float) -> int:
        """On a thread. Another may be told of the last message, which is noticed at the end of a step."""
        outstanding: Outstanding = self._tricorn_outstanding
        epoch = outstanding.end_epoch()
        end = None if timeout < 0 else time.monotonic() + timeout
        while True:
            step = STEP if end is None else min(STEP, max(end - time.monotonic(), 0))
            left: int = plain(self, step)
            if left == 0 or outstanding.is_through(epoch):
                return 0
            if end is not None and time.monotonic() >= end:
                return left

    def flush(self: Any, timeout: float = -1) -> int:
        function = in_steps if self._tricorn_outstanding.counts else plain
        result: int = plain(self, timeout) if timeout == 0 else offloading.run(how, function, (self, timeout), {})
        return result

    flush.__doc__ = plain.__doc__
    return flush


STEP = 0.01
"""Seconds."""


def _produce(plain: Callable[..., Any]) -> Callable[..., Any]:
    def produce(self: Any, *args: Any, **kwargs: Any) -> Any:
        callback = None
        if len(args) > DELIVERY_PLACES[0]:
            callback = next((args[place] for place in DELIVERY_PLACES if len(args) > place and args[place]), None)
            args = tuple(None if place in DELIVERY_PLACES else each for place, each in enumerate(args))
        for name in ("callback", "on_delivery"):
            callback = kwargs.pop(name, None) or callback
        outstanding: Outstanding = self._tricorn_outstanding
        if not outstanding.counts:
            return plain(self, *args, **kwargs, **({"on_delivery": brought(callback)} if callback else {}))
        delivered, failed = outstanding.produced(callback)
        try:
            if len(args) > DELIVERY_PLACES[0]:
                args = (*args[: DELIVERY_PLACES[0]], delivered, *args[DELIVERY_PLACES[0] + 1 :])
                return plain(self, *args, **kwargs)
            return plain(self, *args, **kwargs, on_delivery=delivered)
        except BaseException:
            failed()
            raise

    produce.__doc__ = plain.__doc__
    return produce


def _produce_batch(plain: Callable[..., Any]) -> Callable[..., Any]:
    def produce_batch(self: Any, topic: str, messages: Any, *args: Any, **kwargs: Any) -> Any:
        self._tricorn_outstanding.counts = False
        for message in messages:  # not copied: errors are written into them
            if isinstance(message, dict):
                _with_brought(message, "callback", "on_delivery")
        args = tuple(brought(each) if callable(each) else each for each in args)
        return plain(self, topic, messages, *args, **_with_brought(kwargs, "callback", "on_delivery"))

    produce_batch.__doc__ = plain.__doc__
    return produce_batch


def _subscribe(plain: Callable[..., Any]) -> Callable[..., Any]:
    def subscribe(self: Any, *args: Any, **kwargs: Any) -> Any:
        args = tuple(brought(each) if callable(each) else each for each in args)
        return plain(self, *args, **_with_brought(kwargs, *REBALANCE))

    subscribe.__doc__ = plain.__doc__
    return subscribe
