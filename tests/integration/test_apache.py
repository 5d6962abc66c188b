"""Apache's variables, by uwsgi, FastCGI and SCGI: users, parts of a site, and connections that are kept."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.harness import REFERENCE, Server, until
from tests.harness.apache import Apache, open_to_apache
from tests.harness.front_ends import PROTOCOLS
from tests.harness.scrape import scrape, value
from tests.harness.server import free_ports
from tests.harness.wire import Wire

pytestmark = pytest.mark.skipif(REFERENCE, reason="gunicorn has uwsgi alone")

APP = """\
import json

called = []

def app(environ, start_response):
    called.append(environ["PATH_INFO"])
    told = {key: value for key, value in environ.items() if isinstance(value, str)}
    told["length"] = len(environ["wsgi.input"].read())
    told["called"] = called
    start_response("200 OK", [("Content-Type", "application/json")])
    return [json.dumps(told).encode()]
"""
SITE = """\
Listen 127.0.0.1:{public}
<VirtualHost 127.0.0.1:{public}>
    AllowEncodedSlashes On
    SetEnv SSL_CLIENT_VERIFY SUCCESS
    {mounting}
    ProxyPass "/shop" "{scheme}://127.0.0.1:{own}" {more}
    ProxyPass "/" "{scheme}://127.0.0.1:{own}/" {more}
    <Location "/private">
        AuthType Basic
        AuthName private
        AuthUserFile {directory}/users
        Require valid-user
    </Location>
    <Location "/passed">
        CGIPassAuth On
    </Location>
</VirtualHost>
"""
SCHEMES = {"uwsgi": "uwsgi", "scgi": "scgi", "fastcgi": "fcgi"}
MOUNTING = {"fastcgi": "SetEnvIf Request_URI ^/shop proxy-fcgi-pathinfo=unescape"}
CREDENTIALS = ("Authorization", f"Basic {base64.b64encode(b'joe:secret').decode()}")


class Site:
    def __init__(self, directory: Path) -> None:
        *own, self.admin = free_ports(4)
        doors = [f"{protocol}://127.0.0.1:{port}" for protocol, port in zip(PROTOCOLS, own, strict=True)]
        extra = [word for door in doors[1:] for word in ("-b", door)]
        self.server = Server(
            "told:app", worker_class="gthread", bind=doors[0], extra=extra, keep_alive=30, twins=False,
            admin_bind=f"127.0.0.1:{self.admin}", chdir=directory,
        )  # fmt: skip
        (directory / "told.py").write_text(APP)
        open_to_apache(self.server.directory)
        password = base64.b64encode(hashlib.sha1(b"secret").digest()).decode()
        (self.server.directory / "users").write_text(f"joe:{{SHA}}{password}\n")
        self.public = dict(zip(PROTOCOLS, free_ports(3), strict=True))
        text = "".join(
            SITE.format(
                public=self.public[protocol], own=port, scheme=SCHEMES[protocol], directory=self.server.directory,
                mounting=MOUNTING.get(protocol, ""), more="enablereuse=on ttl=29" if protocol == "fastcgi" else "",
            )
            for protocol, port in zip(PROTOCOLS, own, strict=True)
        )  # fmt: skip
        self.apache = Apache(text, self.public["uwsgi"], directory, *(f"proxy_{name}" for name in SCHEMES.values()))

    def get(self, protocol: str, target: str, *fields: tuple[str, str], status: int = 200) -> dict[str, Any]:
        with Wire(("127.0.0.1", self.public[protocol])) as wire:
            got = wire.get(target, *fields)
            assert got.status == status
            return dict(json.loads(got.body)) if status == 200 else {}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    made = Site(tmp_path_factory.mktemp("apache"))
    with made.server, made.apache:
        yield made


@pytest.fixture(params=PROTOCOLS)
def protocol(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_who_apache_has_authenticated_is_the_user(site: Site, protocol: str) -> None:
    site.get(protocol, "/private", status=401)
    told = site.get(protocol, "/private/x", CREDENTIALS)
    assert (told["REMOTE_USER"], told["AUTH_TYPE"], told["PATH_INFO"]) == ("joe", "Basic", "/private/x")
    assert told["SSL_CLIENT_VERIFY"] == "SUCCESS"
    assert "REMOTE_USER" not in site.get(protocol, "/", ("Remote-User", "joe"))


def test_what_a_client_shows_the_application_is_apaches_to_pass_on(site: Site, protocol: str) -> None:
    assert ("HTTP_AUTHORIZATION" in site.get(protocol, "/", CREDENTIALS)) is (protocol == "uwsgi")
    assert site.get(protocol, "/passed", CREDENTIALS)["HTTP_AUTHORIZATION"] == CREDENTIALS[1]


def test_a_path_is_decoded_and_a_target_is_not(site: Site, protocol: str) -> None:
    told = site.get(protocol, "/a%2Fb%20c/%C3%A4?d=e%26f", ("X-One", "1"))
    assert (told["SCRIPT_NAME"], told["PATH_INFO"]) == ("", "/a/b c/\u00c3\u00a4")
    assert (told["RAW_URI"], told["QUERY_STRING"]) == ("/a%2Fb%20c/%C3%A4?d=e%26f", "d=e%26f")
    assert (told["REQUEST_METHOD"], told["HTTP_X_ONE"], told["wsgi.url_scheme"]) == ("GET", "1", "http")
    assert (told["REMOTE_ADDR"], told["SERVER_PORT"]) == ("127.0.0.1", str(site.public[protocol]))


def test_a_part_of_a_site_is_mounted(site: Site, protocol: str) -> None:
    def paths(target: str) -> tuple[str, str]:
        told = site.get(protocol, target)
        return told["SCRIPT_NAME"], told["PATH_INFO"]

    if protocol == "scgi":  # of which Apache tells no path but the whole
        assert paths("/shop/a%20b") == ("", "/shop/a b")
        return
    assert paths("/shop/a%2Fb%20c?x") == ("/shop", "/a/b c")
    assert paths("/shop/") == ("/shop", "/")
    assert paths("/shop") == ("/shop", "/")


def test_connections_of_fastcgi_are_kept(site: Site) -> None:
    def accepted() -> float:
        return value(scrape(("127.0.0.1", site.admin)), "connections_accepted_total")

    with Wire(("127.0.0.1", site.public["fastcgi"])) as wire:
        assert wire.get("/").status == 200
        before = accepted()
        for _ in range(30):
            assert wire.get("/").status == 200
    assert accepted() - before <= 3


def test_an_upload_that_its_client_gives_up_is_no_request(site: Site, protocol: str) -> None:
    def closed() -> float:
        found = scrape(("127.0.0.1", site.admin)).items()
        return sum(count for (name, _), count in found if name == "connections_closed_total")

    before = closed()
    with Wire(("127.0.0.1", site.public[protocol])) as wire:
        wire.send(b"POST /given-up HTTP/1.1\r\nHost: a\r\nContent-Length: 10000000\r\n\r\n", b"x" * 1_000_000)
        until(wire.is_all_read, "Apache has read it")
        wire.reset()
    until(lambda: closed() > before, "Apache has left, too")
    assert "/given-up" not in site.get(protocol, "/")["called"]
