"""The grammar of addresses."""

from __future__ import annotations

import pytest
from tricorn.config.addresses import Address, FdAddress, TcpAddress, UnixAddress, join, parse
from tricorn.config.validators import Refused


class TestGrammar:
    @pytest.mark.parametrize(
        ("text", "address"),
        [
            ("127.0.0.1:8000", TcpAddress("127.0.0.1", 8000)),
            ("localhost", TcpAddress("localhost", 8000)),
            ("localhost:", TcpAddress("localhost", 8000)),
            (":80", TcpAddress("0.0.0.0", 80)),
            ("", TcpAddress("0.0.0.0", 8000)),
            ("tcp://0.0.0.0:1", TcpAddress("0.0.0.0", 1)),
            ("[::]:8000", TcpAddress("::", 8000)),
            ("[::1]", TcpAddress("::1", 8000)),
            ("tcp://[fe80::1]:0", TcpAddress("fe80::1", 0)),
            ("unix:/run/a.sock", UnixAddress("/run/a.sock")),
            ("unix:///run/a.sock", UnixAddress("/run/a.sock")),
            ("unix:a.sock", UnixAddress("a.sock")),
            ("unix:@name", UnixAddress("\0name")),
            ("unix:\0name", UnixAddress("\0name")),
            ("fd://3", FdAddress(3)),
        ],
    )
    def test_bind_address_is_parsed(self, text: str, address: Address) -> None:
        assert parse(text) == address

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("host:port", "'port' is not a valid port number"),
            ("host:65536", "'65536' is not a valid port number"),
            ("host:-1", "'-1' is not a valid port number"),
            ("host:\u0661", "is not a valid port number"),
            ("::1:8000", "put a v6 address in brackets, as in [::1]:8000"),
            ("[::1", "expected [V6ADDRESS]:PORT"),
            ("[::1]8000", "expected [V6ADDRESS]:PORT"),
            ("23000", "a number alone is a port: put a colon before it, as in :23000"),
            ("tcp://23000", "as in :23000"),
            ("unix:", "expected a path"),
            ("unix:@", "expected a path"),
            ("fd://x", "expected fd://N"),
            ("http://host:80", "expected tcp://, unix:// or fd://, got http://"),
        ],
    )
    def test_bind_address_is_refused(self, text: str, words: str) -> None:
        with pytest.raises(Refused) as caught:
            parse(text)
        assert words in str(caught.value)

    def test_log_lines_show_an_address_as_it_may_be_written(self) -> None:
        assert str(parse("127.0.0.1:80")) == "127.0.0.1:80"
        assert str(parse("[::1]:80")) == "[::1]:80"
        assert str(parse("unix:@name")) == "unix:@name"

    def test_a_host_and_a_port_that_were_given_apart(self) -> None:
        assert join("0.0.0.0", "80") == "0.0.0.0:80"
        assert join("::1", None) == "[::1]:8000"
        assert join(None, "9000") == "127.0.0.1:9000"
