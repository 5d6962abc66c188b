"""wsgi.file_wrapper around things with and without a descriptor, by `kind`; `skip` bytes are read before."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from typing import Any

from behaviours.closing import record
from behaviours.query import parameters


def content(size: int) -> bytes:
    pattern = bytes(range(256))
    return (pattern * (size // 256 + 1))[:size]


def on_disk(size: int, buffering: int = -1) -> Any:
    import tempfile

    file = tempfile.TemporaryFile(buffering=buffering)  # noqa: SIM115 (the server closes it)
    file.write(content(size))
    file.flush()
    file.seek(0)
    return file


class OnlyRead:
    """A file-like object that can do nothing but read, and remembers being closed."""

    def __init__(self, data: bytes, tag: str) -> None:
        self._data = io.BytesIO(data)
        self._tag = tag

    def read(self, size: int) -> bytes:
        return self._data.read(size)

    def close(self) -> None:
        record(self._tag)


class NoClose:
    def __init__(self, data: bytes) -> None:
        self.read = io.BytesIO(data).read


def application(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    given = parameters(environ)
    size, skip = int(given.get("size", "1000")), int(given.get("skip", "0"))
    kinds: dict[str, Callable[[], Any]] = {
        "disk": lambda: on_disk(size),
        "unbuffered": lambda: on_disk(size, 0),
        "memory": lambda: io.BytesIO(content(size)),
        "read_only": lambda: OnlyRead(content(size), given.get("tag", "files")),
        "no_close": lambda: NoClose(content(size)),
    }
    file = kinds[given["kind"]]()
    if skip:
        file.read(skip)
    fields = [("Content-Type", "application/octet-stream")]
    if "length" in given:
        fields.append(("Content-Length", given["length"]))
    start_response("200 OK", fields)
    block = [int(given["block"])] if "block" in given else []
    wrapped = environ["wsgi.file_wrapper"](file, *block)
    if "iterate" in given:
        return [b"".join(wrapped)]
    return wrapped
