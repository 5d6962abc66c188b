"""The listeners' classes, for annotations and `isinstance`."""

from __future__ import annotations

import socket
from typing import Any, ClassVar

from tricorn.arbiter.listeners.sockets import Listener
from tricorn.compat.absent import refuse


class _ByFamily(type):
    FAMILIES: tuple[int, ...]

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Listener) and instance.family in cls.FAMILIES


class BaseSocket(metaclass=_ByFamily):
    FAMILIES: ClassVar[tuple[int, ...]] = (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX)


class TCPSocket(BaseSocket):
    FAMILY = socket.AF_INET
    FAMILIES: ClassVar[tuple[int, ...]] = (socket.AF_INET, socket.AF_INET6)


class TCP6Socket(TCPSocket):
    FAMILY = socket.AF_INET6
    FAMILIES = (socket.AF_INET6,)


class UnixSocket(BaseSocket):
    FAMILY = socket.AF_UNIX
    FAMILIES = (socket.AF_UNIX,)


__getattr__ = refuse(__name__)
