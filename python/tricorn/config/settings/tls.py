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
        help="Certificate and chain (PEM). Addresses without a scheme then use TLS.",
        doc="The file may contain the key too. The arbiter reads the files, possibly as root when the workers run as "
        "another user, and reads them again when they change (`tls_reload`). [How to serve TLS](../guides/tls.md).",
    )

    keyfile = Setting(
        kind=ExistingPath("FILE"),
        default=None,
        help="Private key of `certfile` (PEM, not encrypted).",
        doc="PKCS#8, PKCS#1 or SEC1.",
    )

    certificate: Setting[tuple[str, ...]] = Setting(
        action=Action.APPEND,
        kind=CertificateFiles("CERT[:KEY]"),
        default=(),
        own=True,
        help="Another certificate and its key. Repeat for more host names or key types.",
        doc="The client's server name (SNI) selects the certificate: exact names first, then wildcards. If both an "
        "ECDSA and an RSA certificate match, ECDSA is used. For unknown names the first certificate is used: that of "
        "`certfile`, if set. An OCSP response in CERT.ocsp is stapled.",
    )

    ca_certs = Setting(
        kind=OptionalText(metavar="FILE"),
        default=None,
        help="Certificates of the authorities that client certificates must be issued by (PEM).",
    )

    cert_reqs = Setting(
        kind=CertReqs(),
        default=0,
        help="Client certificates: 0 not requested, 1 optional, 2 required.",
        doc="Also none, optional, required, and Python's names (CERT_REQUIRED). A certificate that the client sends "
        "must be valid and issued by an authority in `ca_certs`, with 1 as well. WSGI applications find it in "
        "SSL_CLIENT_CERT and SSL_CLIENT_S_DN, ASGI applications in the extension `tls`.",
    )

    tls_crl_file: Setting[tuple[str, ...]] = Setting(
        action=Action.APPEND,
        kind=ExistingPaths("FILE"),
        default=(),
        own=True,
        rare=True,
        help="Revocation lists for client certificates (CRL, PEM or DER).",
    )

    tls_min_version = Setting(
        kind=Choice(
            ("1.2", "1.3"), also=(("tlsv1.2", "1.2"), ("tls1.2", "1.2"), ("tlsv1.3", "1.3"), ("tls1.3", "1.3"))
        ),
        default="1.2",
        own=True,
        help="Minimum TLS version: 1.2 or 1.3.",
        doc="Older versions are not supported (RFC 8996).",
    )

    ciphers = Setting(
        kind=OptionalText(),
        default=None,
        help="TLS 1.2 cipher suites, as an OpenSSL list (openssl-ciphers(1)).",
        doc="Python's ssl module parses the list. Of the suites it selects, the supported ones are offered: AES-GCM "
        "and ChaCha20-Poly1305 with ECDHE, six for TLS 1.2. A list without a supported suite is an error. The three "
        "TLS 1.3 suites are always offered, as in OpenSSL.",
    )

    tls_require_sni = Setting(
        kind=Boolean(),
        default=False,
        own=True,
        rare=True,
        help="Reject clients that send no server name, or an unknown one (alert unrecognized_name).",
    )

    tls_redirect = Setting(
        kind=Boolean(),
        default=False,
        core=True,
        own=True,
        help="Redirect plain HTTP requests on a TLS address to https:// (308).",
        doc="Otherwise they get 400. The request must have a Host header.",
    )

    tls_ticket_lifetime = Setting(
        kind=Seconds(max=604_800),
        default=43_200,
        own=True,
        rare=True,
        help="How long clients may resume a TLS session without a full handshake; 0 disables resumption.",
        doc="A ticket stays valid for between half of this time and all of it. Sessions resume on every worker, and "
        "on a successor (USR2). Ticket keys are random, kept in memory, and rotated at half of this time. The maximum "
        "is a week (RFC 8446, section 4.6.1).",
    )

    tls_ticket_keys: Setting[tuple[str, ...]] = Setting(
        flags=("--tls-ticket-key",),
        action=Action.APPEND,
        kind=ExistingPaths("FILE"),
        default=(),
        own=True,
        rare=True,
        help="TLS session ticket keys, shared by several hosts so that each resumes the others' sessions.",
        doc="48 or 80 random bytes per file, as for nginx's ssl_session_ticket_key. The first key encrypts new "
        "tickets, all keys decrypt. The server does not rotate these keys: replace the files yourself, and it reads "
        "them again (`tls_reload`).",
    )

    tls_reload = Setting(
        kind=Seconds(),
        default=5,
        own=True,
        rare=True,
        help="How often to check certificate and key files for changes; 0: on HUP only.",
        doc="New files are validated first. If they are unusable, the log says why and the previous certificates stay "
        "in use. No worker is replaced, and open connections keep their certificates.",
    )

    tls_handshake_timeout = Setting(
        kind=Seconds(min=0.1, max=3600),
        default=10,
        core=True,
        own=True,
        rare=True,
        help="Maximum duration of a TLS handshake, counted from the connection.",
    )

    tls_pending_handshakes = Setting(
        kind=Integer(min=1, max=1_000_000),
        default=512,
        core=True,
        own=True,
        part_of=share("memory_budget", 512, 224 << 20),
        help="Maximum number of TLS handshakes in progress per worker.",
        doc="At the limit the oldest connection that has not sent a ClientHello is closed. If all have sent one, the "
        "worker stops accepting there until a handshake completes; new connections wait in the kernel (`backlog`).",
    )

    tls_buffer_total = Setting(
        kind=Bytes(min=1 << 20),
        default=64 << 20,
        core=True,
        own=True,
        part_of=share("memory_budget", 2, 7),
        help="Bytes that all TLS sessions of a worker may buffer: incomplete and unsent records.",
        doc="A connection holds at most 18 KB of an incomplete record, 96 KB of an incomplete handshake, and 64 KB "
        "that its client does not read. At the limit connections without a request are closed, largest first, then "
        "those with an incomplete body (503). Responses in progress continue.",
    )

    tls_key_log = Setting(
        kind=OptionalText(metavar="FILE"),
        default=None,
        own=True,
        rare=True,
        help="Write the keys of all connections to this file, in NSS format, for Wireshark.",
        doc="For development only: readers of the file can decrypt the traffic. The log warns at each start.",
    )

    ssl_context = Setting(
        flags=(),
        kind=Hook("config, default_ssl_context_factory"),
        default=_default_context,
        default_shown="returns what the factory makes of the settings",
        help="In the arbiter, when the configuration is read: returns the ssl.SSLContext to use.",
        doc="Called once, not for each connection. tricorn takes over the files loaded into the context, versions, "
        "ciphers, authorities and ALPN, and checks the files for changes (`tls_reload`). As with gunicorn the hook is "
        "not called if no address uses TLS: without `certfile` an address needs https://. Not supported: contexts "
        "created elsewhere, sni_callback (list the certificates in `certificate`) and encrypted keys. "
        "[More](../guides/tls.md).",
    )
