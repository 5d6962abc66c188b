"""Names of header fields: made into Python objects once, and never merged into one that a front end has set."""

from __future__ import annotations

import pytest

from tests.harness import Server, Site, each

pytestmark = pytest.mark.beyond_reference("it keeps no names")

ROUNDS = 40
FIELDS = 90


@pytest.mark.parametrize("worker_class", each("sync", "asgi"))
def test_names_that_are_made_up_do_not_stay_for_good(worker_class: str) -> None:
    with Server("names:application", worker_class=worker_class, keep_alive=30) as server, server.connect() as wire:
        # More names than are kept, each once.
        for nr in range(ROUNDS):
            wire.get("/", *((f"X-{nr}-{field}-{nr * field}", "x") for field in range(FIELDS)))
        # Values differ, so that no pair of name and value is found.
        answers = [wire.get("/", ("X-Same", str(nr))).text for nr in range(5)]
        assert answers == ["new", "same", "same", "same", "same"]


SEEN = {
    "tornado": """
import json
from tornado import web

class Handler(web.RequestHandler):
    def get(self):
        self.write(json.dumps([name.lower() for name in self.request.headers] + [self.request.protocol]))

application = web.Application([("/", Handler)])
""",
    "aiohttp": """
from aiohttp import web

async def answer(request):
    return web.json_response([name.lower() for name in request.headers] + [request.scheme])

application = web.Application()
application.router.add_get("/", answer)
""",
}


@pytest.mark.parametrize("worker_class", each("tornado", "aiohttp"))
def test_names_that_nothing_merges_are_passed_on(worker_class: str) -> None:
    config = f"worker_class = {worker_class!r}\n"
    fields = (("X-Token", "a"), ("X_Token", "b"), ("X_Forwarded_Proto", "https"))
    for more, expected in [("", {"x-token", "x_token"}), ("header_map = 'drop'\n", {"x-token"})]:
        with Site(config + more, app="seen:application", files={"seen.py": SEEN[worker_class]}) as server:
            *names, scheme = server.get("/", *fields).json()
            assert {name for name in names if "token" in name} == expected
            assert scheme == "http"


@pytest.mark.parametrize("worker_class", each("sync", "gthread", "tornado"))
def test_the_log_names_the_first_field_that_was_dropped(worker_class: str) -> None:
    """Clients choose the names, so others are dropped without a line."""
    with Server("names:application", worker_class=worker_class, twins=False, keep_alive=30) as server:
        with server.connect() as wire:
            for name in ("X-Fine", "X_Token", "X_Token", "X_Other"):
                assert wire.get("/", (name, "x")).status == 200
        server.log.wait("Dropped the header X_Token: .* Send X-Token instead")
        assert server.log.text.count("Dropped the header") == 1
