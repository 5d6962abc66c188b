"""TLS: who the server is, which clients it asks who they are, and what it agrees on."""

from __future__ import annotations

from typing import Any

from tricorn.config.kinds import CertificateFiles, CertReqs
from tricorn.config.lookups import ExistingPath, ExistingPaths, Hook
from tricorn.config.setting import Action, Section, Setting, share
from tricorn.config.validators import Boolean, Bytes, Choice, Integer, OptionalText, Seconds


def _default_context(config: Any, default_ssl_context_factory: Any) -> Any:
    return default_ssl_context_factory()


class Tls(Section):
    SECTION = "TLS"

    certfile = Setting(
        kind=ExistingPath("FILE"),
        default=None,
        help="The server's certificate and its chain (PEM): with one, addresses without a scheme speak TLS.",
        doc="The key may stand in the same file. Files are read by the arbiter, which may be root where workers are "
        "not, and read again when they change (`tls_reload`). [How to serve TLS](../guides/tls.md).",
    )

    keyfile = Setting(
        kind=ExistingPath("FILE"),
        default=None,
        help="The private key of `certfile` (PEM, not encrypted).",
        doc="PKCS#8, PKCS#1 or SEC1.",
    )

    certificate: Setting[tuple[str, ...]] = Setting(
        action=Action.APPEND,
        kind=CertificateFiles("CERT[:KEY]"),
        default=(),
        own=True,
        help="A certificate, and behind a colon its key: as often as there are some, for other names or key types.",
        doc="The client's server name (SNI) chooses: exact names of the certificates first, then wildcards. Where both "
        "fit, ECDSA comes before RSA. A name that no certificate has gets the first one: `certfile`'s, if there is "
        "one. An OCSP response in CERT.ocsp is stapled.",
    )

    ca_certs = Setting(
        kind=OptionalText(metavar="FILE"),
        default=None,
        help="Certificates of the authorities whose client certificates are accepted (PEM).",
    )

    cert_reqs = Setting(
        kind=CertReqs(),
        default=0,
        help="Whether clients are asked for a certificate: 0 no, 1 it may be missing, 2 it is required.",
        doc="Also none, optional, required, and Python's names (CERT_REQUIRED). A certificate that is there must be "
        "of an authority in `ca_certs` and in force, with 1 as well. WSGI applications find it in SSL_CLIENT_CERT and "
        "SSL_CLIENT_S_DN, ASGI applications in the extension `tls`.",
    )

    tls_crl_file: Setting[tuple[str, ...]] = Setting(
        action=Action.APPEND,
        kind=ExistingPaths("FILE"),
        default=(),
        own=True,
        rare=True,
        help="Lists of client certificates that are revoked (CRL, PEM or DER).",
    )

    tls_min_version = Setting(
        kind=Choice(
            ("1.2", "1.3"), also=(("tlsv1.2", "1.2"), ("tls1.2", "1.2"), ("tlsv1.3", "1.3"), ("tls1.3", "1.3"))
        ),
        default="1.2",
        own=True,
        help="The lowest version of TLS that is spoken: 1.2 or 1.3.",
        doc="Older versions are not there (RFC 8996).",
    )

    ciphers = Setting(
        kind=OptionalText(),
        default=None,
        help="Cipher suites of TLS 1.2, as OpenSSL's list (openssl-ciphers(1)).",
        doc="Python's module ssl reads it. Of what it means those suites are served that there are: AES-GCM and "
        "ChaCha20-Poly1305 with ECDHE, six for TLS 1.2. A list that leaves none is refused. The three suites of TLS "
        "1.3 are always there, as in OpenSSL.",
    )

    tls_require_sni = Setting(
        kind=Boolean(),
        default=False,
        own=True,
        rare=True,
        help="Refuses clients that name no server, or one that no certificate is for (alert unrecognized_name).",
    )

    tls_redirect = Setting(
        kind=Boolean(),
        default=False,
        core=True,
        own=True,
        help="Answers requests in the clear at an address that speaks TLS with 308 to https://.",
        doc="Otherwise with 400. It needs the field Host.",
    )

    tls_ticket_lifetime = Setting(
        kind=Seconds(max=604_800),
        default=43_200,
        own=True,
        rare=True,
        help="How long a client may resume a session without a full handshake; 0: no resumption.",
        doc="At least half of it, and at most all. Every worker resumes what another has agreed on, and a successor "
        "(USR2) what its predecessor has. Keys of tickets are random, stay in memory, and are changed each half of "
        "this time. At most a week (RFC 8446, section 4.6.1).",
    )

    tls_ticket_keys: Setting[tuple[str, ...]] = Setting(
        flags=("--tls-ticket-key",),
        action=Action.APPEND,
        kind=ExistingPaths("FILE"),
        default=(),
        own=True,
        rare=True,
        help="Files with keys of session tickets, so that several hosts resume one another's sessions.",
        doc="48 or 80 random bytes each, as nginx's ssl_session_ticket_key. The first seals, all open. They are read "
        "again when they change (`tls_reload`): who makes them changes them.",
    )

    tls_reload = Setting(
        kind=Seconds(),
        default=5,
        own=True,
        rare=True,
        help="How often files of certificates and keys are looked at for changes; 0: on HUP only.",
        doc="New ones are judged first: if they are broken the log says why, and those of before stay in force. No "
        "worker is replaced, and connections keep what they have begun with.",
    )

    tls_handshake_timeout = Setting(
        kind=Seconds(min=0.1, max=3600),
        default=10,
        core=True,
        own=True,
        rare=True,
        help="How long a handshake may take, from the connection on; a slower one is closed.",
    )

    tls_pending_handshakes = Setting(
        kind=Integer(min=1, max=1_000_000),
        default=512,
        core=True,
        own=True,
        part_of=share("memory_budget", 512, 224 << 20),
        help="Most handshakes under way in a worker.",
        doc="Beyond it the oldest connection that has not said hello is closed. If all have, the worker takes no more "
        "connections there until one is done: they wait in the kernel (`backlog`).",
    )

    tls_buffer_total = Setting(
        kind=Bytes(min=1 << 20),
        default=64 << 20,
        core=True,
        own=True,
        part_of=share("memory_budget", 2, 7),
        help="Bytes that all sessions of a worker may hold: records that are not complete, or not sent.",
        doc="Each connection holds 18 KB of an unfinished record at most, 96 KB of an unfinished handshake, and 64 KB "
        "that its client does not take. Beyond the limit connections without a request are closed, those that hold "
        "the most first, then those whose body is still to come (503). A response under way goes on.",
    )

    tls_key_log = Setting(
        kind=OptionalText(metavar="FILE"),
        default=None,
        own=True,
        rare=True,
        help="A file to which the keys of all connections are written, in NSS's format, for Wireshark.",
        doc="Who reads it reads all that is encrypted: for development only. The log warns at each start.",
    )

    ssl_context = Setting(
        flags=(),
        kind=Hook("config, default_ssl_context_factory"),
        default=_default_context,
        default_shown="returns what the factory makes of the settings",
        help="In the arbiter, when the configuration is read: makes the ssl.SSLContext that says what is served.",
        doc="It is called once, and not for each connection. The files that its context is given, versions, ciphers, "
        "authorities and ALPN are taken over, and the files are looked at for changes (`tls_reload`). As under "
        "gunicorn it is not called where nothing speaks TLS: without `certfile` an address needs https://. Refused are "
        "contexts that were made elsewhere, sni_callback (name the certificates in `certificate`) and encrypted keys. "
        "[More](../guides/tls.md).",
    )
