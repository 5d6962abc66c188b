"""One request as a server made of Python classes sees it: the promises of the native `Call`."""

from __future__ import annotations

from typing import Any, Final, Protocol

ACCEPTED: Final = 0
"""The bytes are written or buffered: the caller may go on."""
BEHIND: Final = 1
"""The client has to catch up: its `Listener` is told when it has."""
GONE: Final = 2
"""The client has left."""
EXCESS: Final = 3
"""More than the Content-Length says: the connection is closed, since what follows would be taken for another answer."""

Fields = dict[str, list[str]] | list[tuple[str, str]]


class Listener(Protocol):
    """The code that answers a call; told what happens to its connection, in the loop, until the call has ended."""

    def on_readable(self) -> object:
        """There is more of the body, or it has ended. Comes after a `read` that returned None."""

    def on_writable(self) -> object:
        """The client has caught up. Comes after a write that returned BEHIND."""

    def on_hangup(self) -> object:
        """The client has closed its sending side. Most that do have left, and some wait for their answer: it may be
        sent for a while yet.
        """

    def on_gone(self) -> object:
        """The client has left, or was given up. The call has ended."""


class Call(Protocol):
    """One request. It owns its connection until `end`, `abort`, `refuse` or `fail`, after which nothing is sent."""

    @property
    def head(self) -> tuple[str, str, str]:
        """Method, target as it came, `HTTP/1.1`."""

    @property
    def fields(self) -> dict[str, list[str]]:
        """The header fields by their `Usual-Names`, every line of a name apart. A new dictionary each time."""

    @property
    def scheme(self) -> str:
        """`http` or `https`, as far as the peer may say so (`secure_scheme_headers`)."""

    @property
    def tls(self) -> dict[str, Any] | None:
        """Facts about the client's TLS session (`tls_session`). None without TLS."""

    @property
    def peer(self) -> tuple[str, int] | None:
        """Address and port of the other end; None on a unix socket."""

    @property
    def is_trusted(self) -> bool:
        """Whether the peer may speak for others (`forwarded_allow_ips`)."""

    @property
    def forwarded(self) -> str | None:
        """The client's address, if a peer that may speak for others tells it (X-Forwarded-For)."""

    def name_route(self, method: object) -> None:
        """The class that this method is bound to names the request's route (`route_metrics`)."""

    @property
    def has_body(self) -> bool:
        """Whether there is, or may be, a body that has bytes."""

    @property
    def length(self) -> int | None:
        """The bytes of the body, if the head says so."""

    def read(self) -> bytes | None:
        """Returns the bytes of the body that have arrived, b"" at its end, None if there are none yet.

        Raises ConnectionError if no more will come: the client left, or its body was refused and answered so. The call
        has ended then.
        """

    def start(self, status: int, reason: str, fields: Fields, chunk: bytes) -> int:
        """The head of the answer, and the first bytes of its body. ACCEPTED, BEHIND, GONE or EXCESS.

        A body that is complete with `chunk` goes out in one piece with the head, and `end` has nothing more to send.
        Raises ValueError for what may not stand in a head (RFC 9110, section 5.5).
        """

    def write(self, chunk: bytes) -> int:
        """More of the body. ACCEPTED, BEHIND, GONE or EXCESS."""

    def end(self) -> int:
        """The answer is complete. Returns how many bytes its Content-Length had promised besides."""

    def abort(self) -> None:
        """Closes the connection."""

    def refuse(self, status: int, message: str) -> None:
        """The server's own page, if nothing was sent yet; closes the connection."""

    def fail(self, error: BaseException) -> None:
        """Logs what the application let out; answers 500 if nothing was sent yet, and closes the connection."""

    def take_socket(self) -> tuple[int, bytes, dict[str, Any] | None]:
        """The connection is the caller's: a descriptor that it has to close, and what was read behind the head.

        `end` says that it is closed. If the client speaks TLS the descriptor is one end of a pair, and the last item is
        what `tls` was, with `names`: of the client's end of its connection, and of ours.
        """
