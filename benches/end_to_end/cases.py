"""The cases: an application, what is sent to it, and the answer that is right. One record each."""

from __future__ import annotations

import json
from typing import NamedTuple

from benches.end_to_end import apps
from benches.harness.load import Load

DOCUMENT = json.dumps({"items": [{"id": n, "price": n * 1.25, "text": "lorem ipsum " * 16} for n in range(40)]})[:-1]
DOCUMENT = DOCUMENT + ', "padding": "' + "p" * (10_240 - len(DOCUMENT) - 15) + '"}'

BROWSER = (
    ("User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"),
    ("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"),
    ("Accept-Language", "en-US,en;q=0.5"),
    ("Accept-Encoding", "gzip, deflate, br, zstd"),
    ("Cookie", "session=0123456789abcdef0123456789abcdef; theme=dark; csrftoken=fedcba9876543210"),
    ("Upgrade-Insecure-Requests", "1"),
    ("Sec-Fetch-Dest", "document"),
    ("Sec-Fetch-Mode", "navigate"),
    ("Sec-Fetch-Site", "none"),
    ("Priority", "u=0, i"),
)


class Case(NamedTuple):
    name: str
    question: str
    application: str
    load: Load
    answer: bytes
    needs_access_log: bool = False

    def request_body(self) -> bytes:
        return self.load.body.encode() or b"x" * self.load.body_bytes


MODULE = "benches.end_to_end.apps"
JSON = (("Content-Type", "application/json"),)

CASES = [
    Case("hello", "13 bytes, keep-alive", f"{MODULE}:hello", Load(), b"Hello, World!"),
    Case(
        "hello-browser", "the same with a browser's headers", f"{MODULE}:hello", Load(headers=BROWSER), b"Hello, World!"
    ),
    Case("hello-accesslog", "each request logged to a file", f"{MODULE}:hello", Load(), b"Hello, World!", True),
    Case(
        "connection-per-request",
        "Connection: close",
        f"{MODULE}:hello",
        Load(headers=(("Connection", "close"),)),
        b"Hello, World!",
    ),
    Case(
        "json-echo-10k",
        "POST of 10 KB JSON, parsed and sent back",
        f"{MODULE}:json_echo",
        Load("POST", headers=JSON, body=DOCUMENT),
        json.dumps(json.loads(DOCUMENT)).encode(),
    ),
    Case("response-1m", "1 MiB out", f"{MODULE}:response_1m", Load(), apps.MEGABYTE),
    Case("upload-1m", "1 MiB in", f"{MODULE}:upload", Load("POST", body_bytes=1048576), b"1048576"),
    Case("stream-100", "100 chunks of 1 KiB, no length", f"{MODULE}:stream_100", Load(), apps.CHUNK * 100),
    Case("flask", "hello through Flask", "benches.end_to_end.flask_app:app", Load(), b"Hello, World!"),
]
