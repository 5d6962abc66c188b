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
        help="Maximum size of the request line in bytes; 0: the built-in maximum.",
        doc="A longer one gets 414. In HTTP/2, method and path count.",
    )

    limit_request_fields = Setting(
        kind=Integer(),
        default=100,
        core=True,
        help="Maximum number of request headers; 0: the built-in maximum.",
        doc="More headers get 431. In HTTP/2, each cookie sent in a header of its own counts.",
    )

    limit_request_field_size = Setting(
        # The odd underscore is gunicorn's, and what users write in its place works, too.
        flags=("--limit-request-field_size", "--limit-request-field-size"),
        kind=Integer(),
        default=8190,
        core=True,
        help="Maximum size of a request header in bytes; 0: the built-in maximum.",
        doc="Counts name and value; a larger one gets 431.",
    )

    limit_request_body = Setting(
        kind=Bytes(),
        default=0,
        core=True,
        own=True,
        help="Maximum size of a request body in bytes; 0: unlimited.",
        doc="A larger one gets 413: before it is read if it has a Content-Length, otherwise when it exceeds the limit.",
    )


class FrontEnds(Section):
    SECTION = "Front Ends"

    trusted_proxies = Setting(
        kind=Networks(),
        default="127.0.0.1,::1",
        own=True,
        help="Addresses or networks of trusted proxies and load balancers.",
        doc="Their X-Forwarded-… headers are used (`forwarded_allow_ips`), with `proxy_protocol` their PROXY "
        "protocol headers (`proxy_allow_ips`), and they may speak uwsgi, SCGI and FastCGI (`uwsgi_allow_ips`). `*` "
        "trusts every peer; peers on a Unix socket are always trusted. Each of the three can be set by its own name. "
        "[Trusted proxies](../guides/trusted-proxies.md).",
    )

    forwarded_allow_ips = Setting(
        env_also=("FORWARDED_ALLOW_IPS",),
        kind=Networks(),
        default="127.0.0.1,::1",
        core=True,
        part_of=same("trusted_proxies"),
        help="Addresses or networks trusted to send X-Forwarded-… headers.",
        doc="`*` trusts every peer. Peers on a Unix socket are always trusted.",
    )

    secure_scheme_headers: Setting[Mapping[str, str]] = Setting(
        flags=(),
        kind=HeaderValues(),
        default=MappingProxyType(
            {"X-FORWARDED-PROTOCOL": "ssl", "X-FORWARDED-PROTO": "https", "X-FORWARDED-SSL": "on"},
        ),
        help="Headers, and their values, by which a front end reports that the client uses HTTPS.",
        doc="Used only from peers in `forwarded_allow_ips`. Values are case-insensitive, `wss` means the same as "
        "`https`, and the last element of a list is used. Requests with contradictory headers are rejected.",
    )

    forwarder_headers: Setting[tuple[str, ...]] = Setting(
        kind=TextList(metavar="HEADERS"),
        default=("SCRIPT_NAME", "PATH_INFO"),
        rare=True,
        help="Upper-case header names with an underscore that a front end may set in the environ.",
        doc="Used only from peers in `forwarded_allow_ips`.",
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
        help="Accept the PROXY protocol from load balancers: off, v1, v2 or auto (both).",
        doc="A header before the first request contains the client's address and, in version 2, the TLS parameters "
        "that it negotiated with the balancer. The address is then used in the environ or scope, in the log, and for "
        "`forwarded_allow_ips`. Connections without a header are accepted too, as with gunicorn, unless "
        "`proxy_protocol_required` is on. [What applications see](../guides/proxy-protocol.md).",
    )

    proxy_allow_ips = Setting(
        flags=("--proxy-allow-from",),
        kind=Networks(),
        default="127.0.0.1,::1",
        core=True,
        part_of=same("trusted_proxies"),
        help="Addresses or networks trusted to send `proxy_protocol` headers.",
        doc="`*` trusts every peer. Peers on a Unix socket are always trusted. A header from another peer is rejected "
        "with 403.",
    )

    proxy_protocol_required = Setting(
        kind=Boolean(),
        default=False,
        core=True,
        own=True,
        rare=True,
        help="Reject connections without a `proxy_protocol` header.",
        doc="Use it if all clients come through the load balancer, so that none can bypass it.",
    )

    protocol = Setting(
        kind=Choice(("http", "uwsgi", "scgi", "fastcgi"), metavar="PROTOCOL"),
        default="http",
        help="Protocol of front ends at addresses without a scheme: http, uwsgi, scgi or fastcgi.",
        doc="For nginx's `uwsgi_pass`, `scgi_pass` and `fastcgi_pass`, and their like. `bind` can choose it for each "
        "address: uwsgi://HOST:PORT, uwsgi+unix:PATH, and the same with scgi and fastcgi. Addresses with http or https "
        "keep speaking HTTP. None of the three is spoken over TLS. "
        "[Behind nginx by uwsgi](../guides/uwsgi.md).",
    )

    uwsgi_allow_ips = Setting(
        flags=("--uwsgi-allow-from",),
        kind=Networks(),
        default="127.0.0.1,::1",
        core=True,
        part_of=same("trusted_proxies"),
        help="Addresses or networks of front ends that may speak uwsgi, SCGI or FastCGI.",
        doc="Others get 403. Peers on a Unix socket are always allowed; `*` allows every peer. What an allowed front "
        "end says of a request (REMOTE_ADDR, REMOTE_USER, HTTPS and the rest) is used as it is, so allow nobody but "
        "your front ends.",
    )

    trusted_proxy_headers: Setting[tuple[str, ...]] = Setting(
        kind=ProxyHeaders(),
        default=(),
        core=True,
        own=True,
        help="Forwarded headers to apply: any of x-forwarded-for, x-forwarded-proto, x-forwarded-host, "
        "x-forwarded-port and x-forwarded-by, or forwarded (RFC 7239).",
        doc="As in Waitress. Headers from peers in `forwarded_allow_ips` set the client's address, the scheme, "
        "`Host`, and the server's name and port, in every worker class. A malformed header is rejected with 400. They "
        "replace `secure_scheme_headers`, and what event loop workers read from X-Forwarded-For. If empty, those "
        "apply. (uvicorn's `--proxy-headers` is different: docs/migrate/flags.md.)",
    )

    trusted_proxy_count = Setting(
        kind=Integer(min=1, max=100),
        default=1,
        core=True,
        own=True,
        help="Number of front ends that a request passes through.",
        doc="Each front end appends a value to `trusted_proxy_headers`. This many values are trusted, counted from "
        "the right; a client may have written the others.",
    )

    clear_untrusted_proxy_headers = Setting(
        kind=Boolean(),
        default=True,
        core=True,
        own=True,
        rare=True,
        help="Pass forwarded headers that are not applied on to the application.",
        doc="By default, with `trusted_proxy_headers`, the application sees X-Forwarded-For, -Proto, -Host, -Port, "
        "-By and Forwarded only if they are applied. Headers from other peers are removed and counted, and logged "
        "once a minute.",
    )

    header_map = Setting(
        kind=Choice(("drop", "refuse", "dangerous")),
        default="drop",
        core=True,
        rare=True,
        help="How to handle header names with an underscore: drop, refuse or dangerous.",
        doc="WSGI maps X_USER and X-USER to one key, while a proxy may treat them as two headers. So names with an "
        "underscore are dropped, unless they are in `forwarder_headers`. The log shows the first one. ASGI, aiohttp "
        "and tornado applications see header names unchanged, so there the default passes them on, and `drop` drops "
        "them only if you set it. Set it for frameworks that build CGI names themselves (Django).",
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
        help="Malformed requests to accept, by the names of gunicorn's settings.",
        doc="Each rule is also a gunicorn setting: `permit_obsolete_folding = True` equals `leniency = "
        '["permit_obsolete_folding"]`. None is safe behind a proxy that parses such requests differently.',
    )

    permit_obsolete_folding = _leniency(
        "permit_obsolete_folding", "Accept headers that continue on the next line (obs-fold of RFC 9112)."
    )

    strip_header_spaces = _leniency("strip_header_spaces", "Accept spaces between a header name and its colon.")

    permit_unconventional_http_method = _leniency(
        "permit_unconventional_http_method",
        "Accept methods with lower-case letters or `#`, or with fewer than 3 or more than 20 characters.",
    )

    permit_unconventional_http_version = _leniency(
        "permit_unconventional_http_version",
        "Treat other HTTP versions as HTTP/1.0 or HTTP/1.1.",
    )

    casefold_http_method = _leniency("casefold_http_method", "Convert methods to upper case: `get` becomes GET.")
