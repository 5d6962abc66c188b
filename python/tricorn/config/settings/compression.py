"""Settings of compressed responses."""

from __future__ import annotations

from tricorn.config.kinds import CODINGS, Codings, MediaTypes
from tricorn.config.setting import Action, Section, Setting
from tricorn.config.validators import Boolean

COMPRESSIBLE = (
    "text/*",
    "*+json",
    "*+xml",
    "application/json",
    "application/javascript",
    "application/xml",
    "application/x-ndjson",
    "application/jsonl",
    "application/yaml",
    "application/wasm",
    "font/otf",
    "font/ttf",
)
"""Types whose content is not compressed already. `*+xml` has image/svg+xml."""


class Compression(Section):
    SECTION = "Compression"

    compress: Setting[tuple[str, ...]] = Setting(
        flags=("--compress",),
        kind=Codings(),
        default=(),
        core=True,
        own=True,
        help=f"Compress responses: off, on, or some of {', '.join(CODINGS)}, preferred first.",
        doc="The client chooses by its Accept-Encoding. Of those it likes equally, the first of the list is used. `on` "
        "means all three. Compressed are whole bodies of 1 KiB or more, and streams: each piece is sent as soon as the "
        "application writes it, so Server-Sent Events arrive when they are sent. Not compressed are responses that "
        "already have a Content-Encoding, partial ones (206), files sent by the kernel, `Cache-Control: no-transform`, "
        "gRPC, WebSockets, and responses with or to credentials (`compress_private`). At most 64 streams of a worker "
        "are compressed at once, with half a MiB of memory each; further ones are sent uncompressed. "
        "[Compression](../guides/compression.md).",
    )

    compress_types: Setting[tuple[str, ...]] = Setting(
        flags=("--compress-type",),
        action=Action.APPEND,
        kind=MediaTypes(),
        default=COMPRESSIBLE,
        default_shown="text, JSON, XML, JavaScript, WebAssembly, fonts",
        core=True,
        own=True,
        rare=True,
        help="Media type of responses to compress, as in text/html, text/* or *+json. May be repeated.",
        doc=f"Replaces the default list: {', '.join(f'`{text}`' for text in COMPRESSIBLE)}. In a variable, separated "
        "by commas. Without text/* or `text/event-stream`, "
        "event streams are not compressed. Types of gRPC and of Connect streams never are: their messages have a "
        "compression of their own.",
    )

    compress_private = Setting(
        kind=Boolean(),
        default=False,
        core=True,
        own=True,
        help="Also compress responses to requests with cookies or credentials.",
        doc="By default a response is not compressed if its request has a Cookie or Authorization header or if it sets "
        "a cookie, unless it says `Cache-Control: public`. The length of a compressed page betrays a secret in it, if "
        "the page also repeats what a stranger made the browser send (BREACH). Turn it on if no page has a secret that "
        "stays the same from request to request next to such input; Django masks its CSRF tokens for that reason. "
        "[More](../guides/compression.md#breach).",
    )
