"""URLs, also of unix sockets."""

from __future__ import annotations

import pytest
from tricorn.config.addresses import TcpAddress, UnixAddress
from tricorn_bench.load import LoadError, Target
from tricorn_bench.load.target import on_socket


@pytest.mark.parametrize(
    ("url", "address", "host", "path"),
    [
        ("http://127.0.0.1:8000/a?b=c#d", TcpAddress("127.0.0.1", 8000), "127.0.0.1:8000", "/a?b=c"),
        ("http://localhost", TcpAddress("localhost", 80), "localhost", "/"),
        ("localhost:8000", TcpAddress("localhost", 8000), "localhost:8000", "/"),
        (":8000/a", TcpAddress("127.0.0.1", 8000), "127.0.0.1:8000", "/a"),
        ("http://[::1]:8000?x", TcpAddress("::1", 8000), "[::1]:8000", "/?x"),
        ("http://[::1]/", TcpAddress("::1", 80), "[::1]", "/"),
        ("ws://user@h:1/s", TcpAddress("h", 1), "h:1", "/s"),
        ("http://h/a b/ü%20", TcpAddress("h", 80), "h", "/a%20b/%C3%BC%20"),
        ("unix:/run/app.sock", UnixAddress("/run/app.sock"), "localhost", "/"),
        ("unix:///run/app.sock:/a?b", UnixAddress("/run/app.sock"), "localhost", "/a?b"),
        ("unix:@name:/a", UnixAddress("\0name"), "localhost", "/a"),
        ("https://h/a", TcpAddress("h", 443), "h", "/a"),
        ("wss://h:80", TcpAddress("h", 80), "h:80", "/"),
        ("https+unix://%2Frun%2Fapp.sock/a", UnixAddress("/run/app.sock"), "localhost", "/a"),
        ("http+unix://%2Frun%2Fapp.sock/a", UnixAddress("/run/app.sock"), "localhost", "/a"),
    ],
)
def test_load_target_urls(url: str, address: TcpAddress | UnixAddress, host: str, path: str) -> None:
    target = Target(url)
    assert (target.address, target.host, target.path) == (address, host, path)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("ftp://h/", "expected http://"),
        ("http:///a", "expected a host"),
        ("http://h:port/", "'port' is not a valid port number"),
        ("unix:", "expected a path"),
    ],
)
def test_what_cannot_be_loaded_is_said(url: str, reason: str) -> None:
    with pytest.raises(LoadError, match=reason):
        Target(url).address


def test_the_same_resource_on_a_socket() -> None:
    assert on_socket("http://h:1/a?b", "/run/s") == "unix:/run/s:/a?b"
    assert on_socket("https://h:1/a?b", "/run/s") == "https+unix://%2Frun%2Fs/a?b"


@pytest.mark.parametrize(
    ("target", "name"),
    [
        (Target("http://h/"), None),
        (Target("unix:/run/s"), None),
        (Target("https://h:1/"), "h"),
        (Target("https://[::1]:1/"), "::1"),
        (Target("https://127.0.0.1/", name="h"), "h"),
        (Target("https+unix://%2Frun%2Fs/"), "localhost"),
    ],
)
def test_whose_certificate_is_asked_for(target: Target, name: str | None) -> None:
    assert target.server_name == name
