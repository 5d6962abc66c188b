"""Settings of HTTP/2: their values, and which of them have an effect only together."""

from __future__ import annotations

import pytest
from tricorn.config import http2
from tricorn.config.command_line import read_arguments
from tricorn.config.config import Config
from tricorn.config.kinds import Cleartext, HttpProtocols
from tricorn.config.load import Sources, load
from tricorn.config.registry import BY_NAME
from tricorn.config.resolve import Raw, override, resolve
from tricorn.config.validators import Invalid, Refused

from tests.harness import with_each

CLEARTEXT = BY_NAME["http2_cleartext"].kind
assert isinstance(CLEARTEXT, Cleartext)


def config(**values: object) -> Config:
    return override(resolve([]), {name: Raw(value, f"--{name}") for name, value in values.items()})


class TestHttpProtocols:
    @pytest.mark.parametrize(
        ("raw", "protocols"),
        [
            ("h1", ("h1",)),
            ("h2,h1", ("h2", "h1")),
            (" H1 , h2 ,", ("h1", "h2")),
            (["h2", "h1"], ("h2", "h1")),
            (("h2",), ("h2",)),
            (None, ("h1",)),
            ("", ("h1",)),
            ([], ("h1",)),
        ],
    )
    def test_forms(self, raw: object, protocols: tuple[str, ...]) -> None:
        assert HttpProtocols().parse(raw) == protocols

    @pytest.mark.parametrize(
        ("raw", "words"),
        [
            ("h4", "expected h1, h2 or both, as in h2,h1, and 'h4' is neither"),
            ("h2,http/1.1", "'http/1.1' is neither"),
            ("h2,h1,h2", "expected each protocol once"),
            ("h3,h2", "HTTP/3 is not available in this version of tricorn; expected h1, h2 or both"),
            (2, "expected a list of texts"),
        ],
    )
    def test_what_is_none(self, raw: object, words: str) -> None:
        with pytest.raises(Invalid) as caught:
            HttpProtocols().parse(raw)
        assert words in str(caught.value)


class TestCleartext:
    @pytest.mark.parametrize(
        ("raw", "value"),
        [
            (None, "off"),
            (False, "off"),
            (True, "prior-knowledge"),
            ("OFF", "off"),
            (" Prior-Knowledge ", "prior-knowledge"),
            ("both", "both"),
        ],
    )
    def test_gunicorns_values(self, raw: object, value: str) -> None:
        assert CLEARTEXT.parse(raw) == value

    def test_an_upgrade_is_refused_and_says_why(self) -> None:
        with pytest.raises(Refused, match=r"Upgrade: h2c is deprecated by RFC 9113, section 3\.1\); expected off or"):
            CLEARTEXT.parse("Upgrade")

    @with_each("raw", ["h2c", "", "on", "prior_knowledge"])
    def test_any_other_value_is_refused(self, raw: str) -> None:
        with pytest.raises(Refused, match="expected one of off, prior-knowledge, both"):
            CLEARTEXT.parse(raw)


@pytest.mark.parametrize(
    ("name", "raw"),
    [
        ("http2_max_concurrent_streams", 0),
        ("http2_max_concurrent_streams", 1 << 31),
        ("http2_initial_window_size", 0),
        ("http2_initial_window_size", 1 << 31),
        ("http2_max_header_list_size", -1),
        ("http2_max_window", 1 << 31),
        ("http2_max_window", 0),
        ("http2_idle_timeout", 0),
        ("http2_reset_limit", 9),
        ("http2_control_limit", 9),
    ],
)
def test_numbers_out_of_range_are_refused(name: str, raw: int) -> None:
    with pytest.raises(Refused, match=r"^expected at (least|most) "):
        BY_NAME[name].kind.parse(raw)


class TestWarnings:
    @pytest.mark.parametrize(
        "values",
        [
            {},
            {"http_protocols": "h2,h1", "certfile": "server.pem"},
            {"http_protocols": "h2,h1", "bind": "https://:443,http://:80"},
            {"http_protocols": "h2", "http2_cleartext": True},
            {"http2_cleartext": "off"},
        ],
    )
    def test_settings_that_go_together_have_none(self, values: dict[str, object]) -> None:
        assert list(http2.warnings(config(**values))) == []

    @pytest.mark.parametrize(
        ("values", "warning"),
        [
            (
                {"http_protocols": "h2,h1"},
                "http_protocols (from --http_protocols) includes h2, but no address uses TLS, so no client can use "
                "HTTP/2. Set certfile, or http2_cleartext = prior-knowledge behind a proxy.",
            ),
            (
                {"http2_cleartext": "prior-knowledge"},
                "http2_cleartext = prior-knowledge (from --http2_cleartext) has no effect without HTTP/2. Set "
                "http_protocols = h2,h1.",
            ),
            (
                {"http_protocols": "h2,h1", "http2_cleartext": "both"},
                "http2_cleartext = both (from --http2_cleartext): requests with Upgrade: h2c are served over HTTP/1.1. "
                "Only connections that start with HTTP/2 (prior knowledge) use it. Set http2_cleartext = "
                "prior-knowledge.",
            ),
        ],
    )
    def test_one_without_the_other(self, values: dict[str, object], warning: str) -> None:
        assert list(http2.warnings(config(**values))) == [warning]

    def test_they_are_among_those_of_the_start(self, tmp_path: object) -> None:
        sources = Sources(("--http-protocols", "h2", "main:app"), {}, str(tmp_path))
        (warning,) = load(sources).warnings
        assert warning.startswith("http_protocols (from --http-protocols) includes h2, but no address uses TLS")


def test_the_command_line_has_gunicorns_flags() -> None:
    line = (
        "--http-protocols h2,h1 --http2-cleartext prior-knowledge --http2-max-concurrent-streams 250 "
        "--http2-initial-window-size 0x20000 --http2-max-frame-size 16384 --http2-max-header-list-size 0"
    )
    found = resolve([read_arguments([*line.split(), "main:app"])])
    assert (found.http_protocols, found.http2_cleartext) == (("h2", "h1"), "prior-knowledge")
    assert (found.http2_max_concurrent_streams, found.http2_initial_window_size) == (250, 131_072)
    assert found.http2_max_header_list_size == 0
