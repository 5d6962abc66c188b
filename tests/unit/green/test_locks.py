"""Locks are replaced wherever modules lead to them."""

from __future__ import annotations

import threading
from collections import OrderedDict
from types import ModuleType
from typing import Any

from tricorn.green import locks

RLOCK = type(threading.RLock())


class New:
    def __init__(self, old: object) -> None:
        self.old = old


def replaced(**names: Any) -> ModuleType:
    module = ModuleType("of_an_application")
    vars(module).update(names)
    locks.replace({"of_an_application": module}, RLOCK, New)
    return module


def test_in_values_items_and_attributes() -> None:
    class Holder:
        of_the_class = threading.RLock()

        def __init__(self) -> None:
            self.own = threading.RLock()

        def method(self) -> None: ...

    vars(Holder.method)["lock"] = threading.RLock()
    module = replaced(
        name=threading.RLock(),
        table={"a": [{"b": threading.RLock()}]},
        ordered=OrderedDict(lock=threading.RLock()),
        kind=Holder,
        holder=Holder(),
    )
    for found in (
        module.name,
        module.table["a"][0]["b"],
        module.ordered["lock"],
        Holder.of_the_class,
        module.holder.own,
        vars(Holder.method)["lock"],
    ):
        assert isinstance(found, New)


def test_a_lock_that_is_shared_stays_shared() -> None:
    lock, circle = threading.RLock(), []
    circle.append(circle)
    module = replaced(one=lock, other=[lock], circle=circle)
    assert module.one is module.other[0]
    assert module.one.old is lock


def test_other_objects_are_what_they_were() -> None:
    lock = threading.Lock()
    module = replaced(lock=lock, words=["a", "b"], numbers={1: 2.0}, pair=(threading.RLock(),))
    assert module.lock is lock
    assert (module.words, module.numbers) == (["a", "b"], {1: 2.0})
    assert isinstance(module.pair[0], RLOCK)


def test_what_takes_no_other_lock_keeps_it_and_ends_no_search() -> None:
    class Stubborn:
        def __init__(self) -> None:
            vars(self).update(lock=threading.RLock(), more=[threading.RLock()])

        def __setattr__(self, name: str, value: object) -> None:
            raise AttributeError(name)

    module = replaced(stubborn=Stubborn(), last=threading.RLock())
    assert isinstance(module.stubborn.lock, RLOCK)
    assert isinstance(module.stubborn.more[0], New)
    assert isinstance(module.last, New)


def test_a_lazy_object_is_not_asked() -> None:
    class Lazy:
        def __getattribute__(self, name: str) -> object:
            raise AssertionError(f"asked for {name}")

    lazy = Lazy()
    object.__setattr__(lazy, "lock", threading.RLock())
    replaced(lazy=lazy)
    assert isinstance(object.__getattribute__(lazy, "lock"), New)


def test_what_is_deep_is_found() -> None:
    deepest: list[Any] = [threading.RLock()]
    outer = deepest
    for _ in range(10_000):
        outer = [outer]
    replaced(outer=outer)
    assert isinstance(deepest[0], New)
