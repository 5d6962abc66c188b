"""Who there is: an authority, certificates of servers and of clients; and servers that have them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from tests.conftest import Pool
from tests.harness import APPS, Server
from tests.harness.certificates import LOCAL, Authority, Issued

INTERFACES = {
    **dict.fromkeys(("sync", "gthread", "gevent", "eventlet"), "wsgi"),
    "asgi": "asgi",
    "tornado": "tornado()",
    "aiohttp": "aiohttp()",
}
"""What `tests/apps/secure.py` has for each class."""
NAMES = {"ecdsa": "ecdsa.test", "rsa": "rsa.test"}
"""What a client asks for to be shown a certificate with such a key."""


class World(NamedTuple):
    authority: Authority
    stranger: Authority
    """Signs what no server here trusts."""
    ecdsa: Issued
    rsa: Issued
    client: Issued
    client_rsa: Issued
    expired: Issued
    revoked: Issued
    strangers: Issued
    """A client's."""
    crl: Path

    @classmethod
    def made(cls, directory: Path) -> World:
        authority, stranger = Authority(directory), Authority(directory, "stranger")
        revoked = authority.issue("revoked")
        return cls(
            authority,
            stranger,
            ecdsa=authority.issue("ecdsa", (*LOCAL, NAMES["ecdsa"], "*.wild.test")),
            rsa=authority.issue("rsa", (NAMES["rsa"],), kind="rsa"),
            client=authority.issue("client", ("client.test", "joe@client.test")),
            client_rsa=authority.issue("rsa", ("client.test",), kind="rsa", file="client-rsa"),
            expired=authority.issue("expired", days=-1),
            revoked=revoked,
            strangers=stranger.issue("stranger's"),
            crl=authority.revoke(revoked),
        )

    def settings(self, **more: Any) -> dict[str, Any]:
        """Flags of a server with both certificates."""
        return {"certificate": [self.ecdsa.pair, self.rsa.pair], **more}

    def mutual(self, cert_reqs: int = 2) -> dict[str, Any]:
        """The same, and clients are asked for theirs."""
        return self.settings(ca_certs=str(self.authority.certificate), cert_reqs=cert_reqs, tls_crl_file=str(self.crl))


def serve(pool: Pool, worker_class: str, app: str = "", **options: Any) -> Server:
    app = app or f"secure:{INTERFACES[worker_class]}"
    return pool.get(app, worker_class=worker_class, chdir=APPS, **options)
