"""A browser as a server sees it: loads a page with all its scripts and styles, keeps connections, leaves in the middle.

Runs in the application's environment: httpx is one of its requirements, this checkout is not on its path.
"""

from __future__ import annotations

import hashlib
import json
import re
import socket
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from html.parser import HTMLParser
from urllib.parse import urldefrag, urljoin, urlsplit

import httpx

CONNECTIONS = 6
"""As many as a browser opens to a host."""

PATIENCE = 60.0

FILES = 100
"""Of a page at most: what is imported dynamically would go on for a thousand."""

FROM_SCRIPTS = re.compile(r"""["'`](\.{1,2}/[^"'`\s]+\.(?:js|mjs|css))["'`]""")
"""Static and dynamic imports, and the tables from which bundlers preload."""

FROM_STYLES = re.compile(r"""(?:@import\s+(?:url\()?|url\()\s*["']?([^"')\s]+)""")


class Links(HTMLParser):
    """What a page makes a browser load by itself."""

    RELATIONS = frozenset(("stylesheet", "modulepreload", "preload", "icon", "manifest", "shortcut icon"))

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag in ("script", "img") and given.get("src"):
            self.found.append(str(given["src"]))
        elif tag == "link" and given.get("rel") in self.RELATIONS and given.get("href"):
            self.found.append(str(given["href"]))


def references(url: str, reply: httpx.Response) -> list[str]:
    kind = reply.headers.get("content-type", "")
    if "html" in kind:
        found = Links(reply.text).found
    elif "javascript" in kind:
        found = FROM_SCRIPTS.findall(reply.text)
    elif "css" in kind:
        found = FROM_STYLES.findall(reply.text)
    else:
        found = []
    return [urldefrag(urljoin(url, each)).url for each in found if not each.startswith("data:")]


class Browser:
    def __init__(self, port: int) -> None:
        self.base = f"http://127.0.0.1:{port}"
        self.port = port
        self.client = httpx.Client(
            base_url=self.base,
            headers={"Accept-Encoding": "gzip, deflate, br, zstd", "User-Agent": "Mozilla/5.0"},
            limits=httpx.Limits(max_connections=CONNECTIONS),
            timeout=PATIENCE,
            trust_env=False,
        )

    def get(self, path: str, status: int = 200, **headers: str) -> httpx.Response:
        reply = self.client.get(path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        assert reply.status_code == status, f"GET {path}: {reply.status_code} {reply.text[:500]}"
        return reply

    def post(self, path: str, status: int = 200, **content: object) -> httpx.Response:
        reply = self.client.post(path, **content)  # type: ignore[arg-type]
        assert reply.status_code == status, f"POST {path}: {reply.status_code} {reply.text[:500]}"
        return reply

    def load(self, path: str, ignoring: str | None = None) -> dict[str, list[object]]:
        """The page and all it refers to on this host, and so on: status, type, encoding and digest of each.

        `ignoring` matches what a page has of its session; it is taken out before pages are compared.
        """
        first = self.client.get(path, follow_redirects=True, headers={"Accept": "text/html,*/*"})
        seen = {str(first.url): self.described(first, ignoring)}
        waiting = references(str(first.url), first)
        with ThreadPoolExecutor(CONNECTIONS) as threads:
            while wanted := [url for url in dict.fromkeys(waiting) if url not in seen and url.startswith(self.base)]:
                waiting = []
                del wanted[FILES - len(seen) :]
                for url, reply in zip(wanted, threads.map(self.client.get, wanted), strict=True):
                    seen[url] = self.described(reply, ignoring)
                    waiting += references(url, reply)
        return {urlsplit(url).path: each for url, each in sorted(seen.items())}

    def described(self, reply: httpx.Response, ignoring: str | None) -> list[object]:
        content = reply.content.replace(self.base.encode(), b"http://here")
        if ignoring is not None:
            content = re.sub(ignoring.encode(), b"", content)
        return [
            reply.status_code,
            reply.headers.get("content-type"),
            reply.headers.get("content-encoding"),
            hashlib.sha256(content).hexdigest()[:16],
        ]

    def leave(self, path: str, after: bytes, method: str = "GET", body: bytes = b"", **headers: str) -> None:
        """Asks for a stream, reads until `after` has come, and closes the connection without a word."""
        with self.stream(path, method, body, **headers) as pieces:
            came = b""
            for piece in pieces:
                came += piece
                if after in came:
                    return
        raise AssertionError(f"{method} {path} ended without {after!r}: {came[-2000:]!r}")

    @contextmanager
    def stream(self, path: str, method: str = "GET", body: bytes = b"", **headers: str) -> Iterator[Iterator[bytes]]:
        """The bytes of a response as they come, on a connection of its own."""
        fields = {"Host": f"127.0.0.1:{self.port}", "Content-Length": str(len(body))}
        fields |= {name.replace("_", "-"): value for name, value in headers.items()}
        with socket.create_connection(("127.0.0.1", self.port), PATIENCE) as connection:
            lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
            connection.sendall(f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode() + body)
            yield iter(lambda: connection.recv(65536), b"")


def events(pieces: Iterator[bytes]) -> Iterator[object]:
    """What server-sent events have as data, as JSON where it is some."""
    waiting = b""
    for piece in pieces:
        *lines, waiting = (waiting + piece).split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                text = line.removeprefix(b"data:").strip().decode()
                try:
                    yield json.loads(text)
                except ValueError:
                    yield text


def until(condition: Callable[[], object], what: str) -> object:
    end = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < end, f"{what}: not within {PATIENCE:g} s"
        time.sleep(0.02)
    return found


def visit(steps: Callable[[Browser], dict[str, object]]) -> None:
    """`python visits/NAME.py PORT` prints what was seen as JSON: the same under each server."""
    print(json.dumps(steps(Browser(int(sys.argv[1]))), indent=1, sort_keys=True))
