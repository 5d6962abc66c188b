"""What `bind` says of a listener."""

from __future__ import annotations

import pytest
from tricorn.config.addresses import FdAddress, TcpAddress, UnixAddress
from tricorn.config.config import Config
from tricorn.config.doors import Door, Doors, decided, parse
from tricorn.config.resolve import Raw, override, resolve
from tricorn.config.validators import Refused

HTTPS = TcpAddress("0.0.0.0", 443)


class TestGrammar:
    @pytest.mark.parametrize(
        ("text", "door"),
        [
            (":80", Door(TcpAddress("0.0.0.0", 80))),
            ("tcp://host:80", Door(TcpAddress("host", 80))),
            ("unix:/run/a.sock", Door(UnixAddress("/run/a.sock"))),
            ("fd://3", Door(FdAddress(3))),
            ("http:80", Door(TcpAddress("http", 80))),  # a host of that name
            ("http://host:80", Door(TcpAddress("host", 80), False)),
            ("https://0.0.0.0:443", Door(HTTPS, True)),
            ("https://:443", Door(HTTPS, True)),
            ("HTTPS://[::]:443", Door(TcpAddress("::", 443), True)),
            ("unix:/a,b", Door(UnixAddress("/a,b"))),
            ("http+unix:a.sock", Door(UnixAddress("a.sock"), False)),
            ("https+unix:/run/a.sock", Door(UnixAddress("/run/a.sock"), True)),
            ("https+unix:///run/a.sock", Door(UnixAddress("/run/a.sock"), True)),
            ("https+unix:@name", Door(UnixAddress("\0name"), True)),
            ("https+fd://3", Door(FdAddress(3), True)),
            ("http+fd://3", Door(FdAddress(3), False)),
            ("https://:443?proxy_protocol=v2", Door(HTTPS, True, "v2")),
            ("https://:443?proxy_protocol_required=on&proxy_protocol=auto", Door(HTTPS, True, "auto", True)),
            ("http+unix:a?proxy_protocol=off", Door(UnixAddress("a"), False, "off")),
            ("https://:443?", Door(HTTPS, True)),
            ("uwsgi://:443", Door(HTTPS, False, protocol="uwsgi")),
            ("scgi+unix:a", Door(UnixAddress("a"), False, protocol="scgi")),
            ("fastcgi+fd://3?proxy_protocol=v2", Door(FdAddress(3), False, "v2", protocol="fastcgi")),
        ],
    )
    def test_door_is_parsed(self, text: str, door: Door) -> None:
        assert parse(text) == door

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("https://host", "expected a port, as in https://host:443"),
            ("http://[::1]", "expected a port, as in http://[::1]:80"),
            ("https://host:", "expected a port, as in https://host:443"),
            ("https://host:443/", "expected https://HOST:PORT without a path, as in https://host:443"),
            ("https:///run/a", "without a path; a unix socket is https+unix:/run/a"),
            ("https://host:x", "'x' is not a valid port number"),
            ("ftp://host:21", "expected http://, https://, http+unix:"),
            ("http+tcp://host:80", "expected http://, https://, http+unix:"),
            ("uwsgi://:", "expected a port, as in uwsgi://:3031"),
            ("fastcgi://host/a", "expected fastcgi://HOST:PORT without a path"),
            ("scgi:///run/a", "a unix socket is scgi+unix:/run/a"),
            ("h2c://:80", "expected http:// or https://: http_protocols says whether HTTP/2 is served there, too"),
            ("h2+unix:/run/a", "http_protocols says whether HTTP/2 is served there"),
            ("h3://:443", "this version of tricorn does not speak HTTP/3"),
            ("https+unix:", "expected a path"),
            ("https+fd://x", "expected fd://N"),
            ("https://:443?proxy_protocl=v2", "did you mean 'proxy_protocol'?"),
            ("https://:443?proxy_protocol", "expected proxy_protocol=off|v1|v2|auto or proxy_protocol_required=on|off"),
            ("https://:443?proxy_protocol=v3", "expected proxy_protocol=off|v1|v2|auto, got 'v3'"),
            ("https://:443?proxy_protocol_required=maybe", "expected proxy_protocol_required=on|off, got 'maybe'"),
            ("https://:443?proxy_protocol=v1&proxy_protocol=v2", "proxy_protocol is said twice"),
            ("https://:443?proxy_protocol=off&proxy_protocol_required=on", "contradicts proxy_protocol=off"),
            ("a:1,http://b:2", "expected one address; several are given apart, as in -b ADDRESS -b ADDRESS"),
            (":80?proxy_protocol=v2", "is not a valid port number"),
        ],
    )
    def test_invalid_door_is_refused(self, text: str, words: str) -> None:
        with pytest.raises(Refused) as caught:
            parse(text)
        assert words in str(caught.value)

    @pytest.mark.parametrize(
        "text",
        [
            "127.0.0.1:80",
            "https://[::1]:443?proxy_protocol=v2&proxy_protocol_required=off",
            "http+unix:@a",
            "https+fd://3",
            "uwsgi+unix:/run/a",
            "fastcgi://127.0.0.1:9000?proxy_protocol=v1",
        ],
    )
    def test_it_is_shown_as_it_may_be_written(self, text: str) -> None:
        assert str(parse(text)) == text


class TestSeveral:
    @pytest.mark.parametrize(
        "texts",
        ["https://:443,http://:443", ":443,https://0.0.0.0:443", "http+unix:a,https+unix:a"],
    )
    def test_an_address_has_one_scheme(self, texts: str) -> None:
        with pytest.raises(Refused, match="are one address: it has one scheme"):
            Doors().parse(texts)

    def test_and_one_word_for_each_option(self) -> None:
        with pytest.raises(Refused, match="one word for each option"):
            Doors().parse(["https://:443", "https://:443?proxy_protocol=v1"])

    def test_they_stay_as_they_were_written(self) -> None:
        texts = ("https://:443?proxy_protocol=v2", "http://127.0.0.1:8080", "unix:/run/a")
        assert Doors().parse(list(texts)) == texts

    def test_an_address_that_is_named_twice_is_listened_on_once(self) -> None:
        assert decided([":443", "0.0.0.0:443"], tls=True) == (Door(HTTPS, True),)


def config(**values: object) -> Config:
    return override(resolve([]), {name: Raw(value, "a test") for name, value in values.items()})


class TestOfAConfiguration:
    def test_without_a_certificate_all_is_in_the_clear(self) -> None:
        assert [door.tls for door in config(bind=":80,unix:/a,http://:81").doors] == [False, False, False]

    @pytest.mark.parametrize("certificate", [{"certfile": "c.pem"}, {"certificate": ["c.pem"]}])
    def test_with_one_all_is_tls_but_for_what_says_http(self, certificate: dict[str, object]) -> None:
        found = config(bind=":80,unix:/a,http://:81,https://:82", **certificate)
        assert [door.tls for door in found.doors] == [True, True, False, True]
        assert not any(door.tls for door in config(admin_bind=":9000", **certificate).admin_doors)

    def test_a_protocol_of_front_ends_is_for_addresses_without_a_scheme(self) -> None:
        found = config(bind=":80,http://:81,https://:82,scgi://:83", protocol="uwsgi", certfile="c.pem")
        assert [(door.tls, door.protocol) for door in found.doors] == [
            (False, "uwsgi"),
            (False, ""),
            (True, ""),
            (False, "scgi"),
        ]
        assert [door.scheme for door in found.doors] == ["uwsgi", "http", "https", "scgi"]
        assert not any(door.protocol for door in config(admin_bind=":9000", protocol="uwsgi").admin_doors)

    def test_hooks_find_the_addresses_as_gunicorn_has_them(self) -> None:
        found = config(bind="https://Host:443?proxy_protocol=v1,http+unix:/a,https+fd://3")
        assert found.address == [("host", 443), "/a", 3]
