"""Values of the settings of compressed responses."""

from __future__ import annotations

from typing import Any

import pytest
from tricorn.config.kinds import CODINGS, Codings, MediaTypes
from tricorn.config.settings.compression import COMPRESSIBLE
from tricorn.config.validators import Refused

from tests.harness import with_each


@with_each(
    ("raw", "codings"),
    [
        ("on", CODINGS),
        ("True", CODINGS),
        (True, CODINGS),
        ("off", ()),
        ("", ()),
        (None, ()),
        (False, ()),
        ("gzip", ("gzip",)),
        ("BR, gzip,br", ("br", "gzip")),
        (["zstd", "br"], ("zstd", "br")),
    ],
)
def test_codings(raw: Any, codings: tuple[str, ...]) -> None:
    assert Codings().parse(raw) == codings


@with_each(("raw", "meant"), [("brotli", "br"), ("zstandard", "zstd"), ("gz", "gzip"), ("gzpi", "gzip")])
def test_a_wrong_coding_is_told_with_what_was_meant(raw: str, meant: str) -> None:
    with pytest.raises(Refused, match=f"did you mean '{meant}'"):
        Codings().parse(raw)


@with_each("raw", ["deflate", "on,gzip", "off,br", "*"])
def test_what_is_no_coding(raw: str) -> None:
    with pytest.raises(Refused, match="expected on, off, or some of zstd, br, gzip"):
        Codings().parse(raw)


@with_each(
    ("raw", "types"),
    [
        ("text/html", ("text/html",)),
        ("Text/*, *+JSON, text/*", ("text/*", "*+json")),
        (["application/json"], ("application/json",)),
        ("", ()),
        (COMPRESSIBLE, COMPRESSIBLE),
    ],
)
def test_media_types(raw: Any, types: tuple[str, ...]) -> None:
    assert MediaTypes().parse(raw) == types


@with_each("raw", ["text", "*", "*/*", "text/", "/html", "text/*x", "a/b/c", "*json", "*+", "*+*", "text/html;q=1"])
def test_what_is_no_media_type(raw: str) -> None:
    with pytest.raises(Refused, match="expected media types such as"):
        MediaTypes().parse(raw)
