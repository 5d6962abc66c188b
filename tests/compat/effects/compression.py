"""Compressed responses: an effect for each setting."""

from __future__ import annotations

from tests.compat.effects.shared import shared
from tests.harness import Site

PAGES = """
def application(environ, start_response):
    kind = {"/page": "text/html", "/table": "text/csv", "/data": "application/json"}[environ["PATH_INFO"]]
    start_response("200 OK", [("Content-Type", kind)])
    return [b"some text " * 400]
"""


@shared
def compressing() -> Site:
    return Site("compress = ['br', 'gzip']\n", app="pages:application", files={"pages.py": PAGES})


@shared
def compressing_more() -> Site:
    config = "compress = True\ncompress_types = 'text/csv, *+xml'\ncompress_private = True\n"
    return Site(config, app="pages:application", files={"pages.py": PAGES})


def coding(server: Site, target: str, *fields: tuple[str, str]) -> str | None:
    return server.get(target, ("Accept-Encoding", "gzip, br, zstd"), *fields).get("content-encoding")


def sees_compress(compressing: Site, compressing_more: Site) -> None:
    assert coding(compressing, "/page") == "br"
    assert coding(compressing_more, "/table") == "zstd"
    with Site("compress = 'deflate'\n", wait=False) as server:
        assert server.wait_exit() == 1
        assert "zstd, br, gzip" in server.log.text


def sees_compress_types(compressing: Site, compressing_more: Site) -> None:
    found = [
        [coding(server, path) for path in ("/page", "/table", "/data")] for server in (compressing, compressing_more)
    ]
    assert found == [["br", "br", "br"], [None, "zstd", None]]


def sees_compress_private(compressing: Site, compressing_more: Site) -> None:
    cookie = ("Cookie", "session=1")
    assert (coding(compressing, "/table", cookie), coding(compressing_more, "/table", cookie)) == (None, "zstd")
