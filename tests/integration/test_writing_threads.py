"""An application returns while a thread or greenlet of its own still writes (PEP 3333): the response is whole."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.harness import Site, each, until
from tests.harness.classes import WSGI
from tests.harness.wire import request

SIZE = 16 << 20
"""More than the kernel takes for a client that does not read."""
APP = f"""\
import pathlib, threading, time

HERE = pathlib.Path(__file__).parent


def application(environ, start_response):
    name = environ["PATH_INFO"].strip("/")
    if not name:
        start_response("200 OK", [("Content-Length", "2")])
        return [b"ok"]
    write = start_response("200 OK", [("Content-Length", str({SIZE} + 1))])
    begun = HERE / name

    def send():
        write(b"x")
        write(b"y" * {SIZE})

    threading.Thread(target=send, daemon=True).start()
    end = time.monotonic() + 60
    while not begun.exists() and time.monotonic() < end:
        time.sleep(0.01)
    (HERE / (name + "-returned")).touch()
    return []
"""

pytestmark = pytest.mark.beyond_reference("it ends the response when the application returns")


@pytest.fixture(scope="module", params=each(*WSGI))
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    config = f"worker_class = {request.param!r}\nresponse_buffering = 'off'\nwrite_timeout = 60\n"
    with Site(config, app="writing:application", files={"writing.py": APP}) as site:
        yield site


def test_the_response_ends_when_its_thread_has_written_it(site: Site) -> None:
    for name in ("first", "second"):
        with site.connect(receive_buffer=4096) as wire:
            wire.send(request("GET", f"/{name}"))
            until(lambda wire=wire: wire.backlog() > 65_536, "the thread is in the midst of its second piece")
            (site.directory / name).touch()
            until((site.directory / f"{name}-returned").exists, "the application has returned")
            reply = wire.reply()
            assert (reply.status, len(reply.body)) == (200, SIZE + 1)
            assert wire.get("/").body == b"ok", "on the same connection"
    assert not site.log.matching("Error|Traceback|fewer bytes"), site.log.text
