"""Settings of what a request may look like, and of trusted proxies."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tricorn.config.kinds import ProxyHeaders
from tricorn.config.setting import Action, Section, Setting, member, same
from tricorn.config.validators import Boolean, Bytes, Choice, Choices, HeaderValues, Integer, Mode, Networks, TextList


def _leniency(name: str, text: str) -> Setting[bool]:
    return Setting(kind=Boolean(), default=False, core=True, part_of=member("leniency", name), help=text)


class Limits(Section):
    SECTION = "Security"

    limit_request_line = Setting(
        kind=Integer(),
        default=4094,
        core=True,
        help="Most bytes of a request line; 0 is the largest there is.",
        doc="A longer one is answered with 414.",
    )

    limit_request_fields = Setting(
        kind=Integer(),
        default=100,
        core=True,
        help="Most header fields of a request; 0 is the largest there is.",
        doc="A request with more is answered with 431.",
    )

    limit_request_field_size = Setting(
        # The odd underscore is gunicorn's, and what users write in its place works, too.
        flags=("--limit-request-field_size", "--limit-request-field-size"),
        kind=Integer(),
        default=8190,
        core=True,
        help="Most bytes of one header field; 0 is the largest there is.",
        doc="Of name and value together; a longer one is answered with 431.",
    )

    limit_request_body = Setting(
        kind=Bytes(),
        default=0,
        core=True,
        own=True,
        help="The maximum size of a request body in bytes; 0 is no limit.",
        doc="A larger one is refused with 413: before it is read if its length is announced, when it is exceeded if "
        "not.",
    )


class FrontEnds(Section):
    SECTION = "Front Ends"

    trusted_proxies = Setting(
        kind=Networks(),
        default="127.0.0.1,::1",
        own=True,
        help="Addresses or networks of proxies and balancers that may say who the client is.",
        doc="They are believed in X-Forwarded-… fields (`forwarded_allow_ips`) and, with `proxy_protocol`, in headers "
        "of the PROXY protocol (`proxy_allow_ips`). `*` believes every peer; peers on a unix socket are always "
        "believed. One of the two may be set by its own name. [Who may say who the client "
        "is](../guides/trusted-proxies.md).",
    )

    forwarded_allow_ips = Setting(
        env_also=("FORWARDED_ALLOW_IPS",),
        kind=Networks(),
        default="127.0.0.1,::1",
        core=True,
        part_of=same("trusted_proxies"),
        help="Addresses or networks of front ends whose X-Forwarded-… fields are believed.",
        doc="`*` believes every peer. Peers on a unix socket are always believed.",
    )

    secure_scheme_headers: Setting[Mapping[str, str]] = Setting(
        flags=(),
        kind=HeaderValues(),
        default=MappingProxyType(
            {"X-FORWARDED-PROTOCOL": "ssl", "X-FORWARDED-PROTO": "https", "X-FORWARDED-SSL": "on"},
        ),
        help="Headers, and their values, by which a front end says that the client uses HTTPS.",
        doc="They count only from peers in `forwarded_allow_ips`. Values compare without case, `wss` says the same as "
        "`https`, and the last element of a list counts. Contradictory ones are refused.",
    )

    forwarder_headers: Setting[tuple[str, ...]] = Setting(
        kind=TextList(metavar="HEADERS"),
        default=("SCRIPT_NAME", "PATH_INFO"),
        rare=True,
        help="Upper-case header names with an underscore that a front end may set in the environ.",
        doc="They count only from peers in `forwarded_allow_ips`.",
    )

    proxy_protocol = Setting(
        kind=Mode(
            ("off", "v1", "v2", "auto"),
            metavar="[MODE]",
            also=(("true", "auto"), ("1", "auto"), ("yes", "auto"), ("on", "auto"), ("false", "off"), ("0", "off")),
            on="auto",
            off="off",
        ),
        default="off",
        bare="auto",
        core=True,
        help="Which version of the PROXY protocol balancers announce connections by: off, v1, v2 or auto (both).",
        doc="A header before the first request names the client, and with version 2 what it has agreed on with the "
        "balancer by TLS. The connection is the client's from then on: in the environ or scope, in the log, and for "
        "`forwarded_allow_ips`. A connection without a header speaks for itself, as under gunicorn, unless "
        "`proxy_protocol_required` is on. [What applications are told](../guides/proxy-protocol.md).",
    )

    proxy_allow_ips = Setting(
        flags=("--proxy-allow-from",),
        kind=Networks(),
        default="127.0.0.1,::1",
        core=True,
        part_of=same("trusted_proxies"),
        help="Addresses or networks of balancers whose `proxy_protocol` headers are believed.",
        doc="`*` believes every peer. Peers on a unix socket are always believed. A header of another peer is "
        "answered with 403.",
    )

    proxy_protocol_required = Setting(
        kind=Boolean(),
        default=False,
        core=True,
        own=True,
        rare=True,
        help="Refuses connections that do not begin with a `proxy_protocol` header.",
        doc="Set it where all clients come through the balancer: then no client can come around it.",
    )

    trusted_proxy_headers: Setting[tuple[str, ...]] = Setting(
        kind=ProxyHeaders(),
        default=(),
        core=True,
        own=True,
        help="Which forwarded headers of front ends are applied to a request: some of x-forwarded-for, "
        "x-forwarded-proto, x-forwarded-host, x-forwarded-port and x-forwarded-by, or forwarded (RFC 7239).",
        doc="Waitress's. From peers in `forwarded_allow_ips` they become the client's address, the scheme, `Host` and "
        "the server's name and port, under every worker class; one that cannot be read is refused with 400. They then "
        "stand in place of `secure_scheme_headers`, and of what event-loop workers read from X-Forwarded-For. Empty: "
        "these do what they do without this setting. (uvicorn's `--proxy-headers` is something else: "
        "docs/migrate/flags.md.)",
    )

    trusted_proxy_count = Setting(
        kind=Integer(min=1, max=100),
        default=1,
        core=True,
        own=True,
        help="How many front ends a request passes, one behind the other.",
        doc="Each adds its word at the right end of `trusted_proxy_headers`. So many words are believed, from the "
        "right; what stands left of them a client may have written.",
    )

    clear_untrusted_proxy_headers = Setting(
        kind=Boolean(),
        default=True,
        core=True,
        own=True,
        rare=True,
        help="Leaves the application forwarded headers that are not applied.",
        doc="Otherwise, with `trusted_proxy_headers`, the application sees X-Forwarded-For, -Proto, -Host, -Port, -By "
        "and Forwarded only where they are applied. Those of other peers are counted, and the log says so once a "
        "minute.",
    )

    header_map = Setting(
        kind=Choice(("drop", "refuse", "dangerous")),
        default="drop",
        core=True,
        rare=True,
        help="What to do with header names that contain an underscore: drop, refuse or dangerous.",
        doc="A proxy may take X_USER and X-USER for two names, while WSGI makes one of them; so such fields are "
        "dropped, unless they are in `forwarder_headers`. The log names the first one. ASGI, aiohttp and tornado "
        "applications see names as they came, so there the default passes such fields on; `drop` drops them only "
        "where it is set. Set it for a framework that makes names of CGI itself (Django).",
    )


class Leniency(Section):
    SECTION = "Leniency"

    leniency: Setting[tuple[str, ...]] = Setting(
        action=Action.APPEND,
        kind=Choices(
            (
                "permit_obsolete_folding",
                "strip_header_spaces",
                "permit_unconventional_http_method",
                "permit_unconventional_http_version",
                "casefold_http_method",
            ),
            metavar="RULE",
        ),
        default=(),
        own=True,
        rare=True,
        help="What malformed requests are accepted, by gunicorn's names of these settings.",
        doc="Each rule is a setting of gunicorn's as well: `permit_obsolete_folding = True` is `leniency = "
        '["permit_obsolete_folding"]`. None is safe behind a proxy that reads such requests differently.',
    )

    permit_obsolete_folding = _leniency(
        "permit_obsolete_folding", "Accept header fields that go on in the next line (obs-fold of RFC 9112)."
    )

    strip_header_spaces = _leniency(
        "strip_header_spaces", "Accept spaces between the name of a header field and its colon."
    )

    permit_unconventional_http_method = _leniency(
        "permit_unconventional_http_method",
        "Accept methods with lower-case letters or `#`, and of fewer than 3 or more than 20 characters.",
    )

    permit_unconventional_http_version = _leniency(
        "permit_unconventional_http_version",
        "Accept versions other than HTTP/1.0 and HTTP/1.1 as if they were one of these.",
    )

    casefold_http_method = _leniency("casefold_http_method", "Make methods upper case: `get` is GET.")
