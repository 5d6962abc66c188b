"""confluent-kafka: flush, poll, consume and what else waits for a broker is called by a thread.

librdkafka calls back on the thread that polls. What the application gives it is called by the greenlet that polls:
delivery reports, `error_cb`, `stats_cb`, rebalances. They are done when `flush` or `poll` returns, as ever.

A producer takes calls of several threads at once, so that flushes wait side by side. A consumer's are made one by one.
`poll(0)` and its like never wait, and are made as they stand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from tricorn.green.cures.replace import Waits, always, subclass, unless_zero
from tricorn.offloading import How, brought

if TYPE_CHECKING:
    from tricorn.green.drivers.records import Ground

CALLBACKS = ("callback", "error_cb", "on_commit", "on_delivery", "oauth_cb", "stats_cb", "throttle_cb")
"""Of configurations and of produce()."""
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
    "flush": unless_zero(0),
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
SHARE_CONSUMER = {**always("close", "commit", "unsubscribe", "__exit__"), "poll": unless_zero(0)}


def apply(cimpl: Any, _: Ground) -> None:
    """Of the module in C, from which all others of the package take these names."""
    _replace(cimpl, "Producer", PRODUCER, How(), {"produce": _produce, "produce_batch": _produce_batch})
    _replace(cimpl, "Consumer", CONSUMER, How(serial=True), {"subscribe": _subscribe})
    _replace(cimpl, "ShareConsumer", SHARE_CONSUMER, How(serial=True), {})
    _replace(cimpl, "_AdminClientImpl", {**always("list_topics"), "poll": unless_zero(0)}, How(), {})


Make = Callable[[Callable[..., Any]], Callable[..., Any]]


def _replace(cimpl: Any, name: str, methods: Mapping[str, Waits | None], how: How, more: Mapping[str, Make]) -> None:
    original = getattr(cimpl, name, None)
    if original is None or getattr(original, "__tricorn__", False):
        return
    names = {each: make(getattr(original, each)) for each, make in more.items() if hasattr(original, each)}
    setattr(cimpl, name, subclass(original, methods, how, {"__init__": _init(original), **names}))


def _init(original: Any) -> Callable[..., None]:
    plain = original.__init__

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
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


def _produce(plain: Callable[..., Any]) -> Callable[..., Any]:
    def produce(self: Any, *args: Any, **kwargs: Any) -> Any:
        if len(args) > DELIVERY_PLACES[0]:
            args = tuple(
                brought(each) if place in DELIVERY_PLACES and callable(each) else each
                for place, each in enumerate(args)
            )
        return plain(self, *args, **(_with_brought(kwargs, "callback", "on_delivery") if kwargs else kwargs))

    produce.__doc__ = plain.__doc__
    return produce


def _produce_batch(plain: Callable[..., Any]) -> Callable[..., Any]:
    def produce_batch(self: Any, topic: str, messages: Any, *args: Any, **kwargs: Any) -> Any:
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
