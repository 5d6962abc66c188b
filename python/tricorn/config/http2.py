"""Checks settings of HTTP/2 that have an effect only together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tricorn.config.config import Config


def warnings(config: Config) -> Iterator[str]:
    """Yields a warning for each setting of HTTP/2 that does not do what its author expects."""
    cleartext, origin = config.http2_cleartext, config.origin("http2_cleartext")
    if "h2" not in config.http_protocols:
        if cleartext != "off":
            yield (
                f"http2_cleartext = {cleartext} (from {origin}) has no effect without HTTP/2. Set http_protocols = "
                "h2,h1."
            )
        return
    if cleartext == "both":
        yield (
            f"http2_cleartext = both (from {origin}): requests with Upgrade: h2c are served over HTTP/1.1. Only "
            "connections that start with HTTP/2 (prior knowledge) use it. Set http2_cleartext = prior-knowledge."
        )
    if cleartext == "off" and not any(door.tls for door in config.doors):
        yield (
            f"http_protocols (from {config.origin('http_protocols')}) includes h2, but no address uses TLS, so no "
            "client can use HTTP/2. Set certfile, or http2_cleartext = prior-knowledge behind a proxy."
        )
