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


def named(size: int) -> Any:
    import tempfile

    file = tempfile.NamedTemporaryFile()  # noqa: SIM115
    file.write(content(size))
    file.seek(0)
    return file


def spooled(size: int) -> Any:
    """On disk from 100 bytes on."""
    import tempfile

    file = tempfile.SpooledTemporaryFile(100)  # noqa: SIM115
    file.write(content(size))
    file.seek(0)
    return file


def compressed(size: int) -> Any:
    """Its `fileno` is that of the compressed bytes."""
    import gzip

    file = on_disk(0)
    with gzip.GzipFile(fileobj=file, mode="wb") as packed:
        packed.write(content(size))
    file.seek(0)
    return gzip.GzipFile(fileobj=file)


def of_archive(size: int) -> Any:
    import tarfile

    file = on_disk(0)
    with tarfile.open(fileobj=file, mode="w") as archive:
        member = tarfile.TarInfo("member")
        member.size = size
        archive.addfile(member, io.BytesIO(content(size)))
    file.seek(0)
    return tarfile.open(fileobj=file).extractfile("member")


class Flipped(io.FileIO):
    """Its `read` and its `readinto`, which a buffer around it calls, are its own."""

    def read(self, size: int = -1, /) -> bytes:
        return bytes(255 - byte for byte in super().read(size) or b"")

    def readinto(self, buffer: Any, /) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def flipped(size: int) -> Any:
    import os
    import tempfile

    descriptor, path = tempfile.mkstemp()
    os.unlink(path)
    os.write(descriptor, bytes(255 - byte for byte in content(size)))
    os.lseek(descriptor, 0, os.SEEK_SET)
    return Flipped(descriptor)


def piped(size: int) -> Any:
    """No more than a pipe holds."""
    import os

    reader, writer = os.pipe()
    with open(writer, "wb") as file:  # os.close() of gevent's waits for the hub
        file.write(content(size))
    return open(reader, "rb")


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
        "named": lambda: named(size),
        "spooled": lambda: spooled(size),
        "compressed": lambda: compressed(size),
        "of_archive": lambda: of_archive(size),
        "flipped": lambda: flipped(size),
        "buffered_flipped": lambda: io.BufferedReader(flipped(size)),
        "piped": lambda: piped(size),
        "made_when_read": lambda: open("/proc/self/limits", "rb"),  # noqa: SIM115
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
