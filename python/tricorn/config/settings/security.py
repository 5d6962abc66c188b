"""What a request may look like, and whose word about it is believed."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tricorn.config.setting import Action, Setting
from tricorn.config.validators import Boolean, Bytes, Choice, HeaderValues, Integer, Networks, TextList

LIMITS_SECTION = "Security"
TRUST_SECTION = "Front Ends"
LENIENCY_SECTION = "Leniency"

LIMIT_REQUEST_LINE = Setting(
    name="limit_request_line",
    flags=("--limit-request-line",),
    kind=Integer(),
    default=4094,
    core=True,
    section=LIMITS_SECTION,
    help="The maximum size of HTTP request line in bytes; 0 is the largest there is.",
    doc="A longer one is answered with 414.",
)

LIMIT_REQUEST_FIELDS = Setting(
    name="limit_request_fields",
    flags=("--limit-request-fields",),
    kind=Integer(),
    default=100,
    core=True,
    section=LIMITS_SECTION,
    help="Limit the number of HTTP headers fields in a request; 0 is the largest there is.",
    doc="A request with more is answered with 431.",
)

LIMIT_REQUEST_FIELD_SIZE = Setting(
    name="limit_request_field_size",
    flags=("--limit-request-field_size",),  # the odd underscore is gunicorn's
    kind=Integer(),
    default=8190,
    core=True,
    section=LIMITS_SECTION,
    help="Limit the allowed size of an HTTP request header field; 0 is the largest there is.",
    doc="Of name and value together; a longer one is answered with 431.",
)

LIMIT_REQUEST_BODY = Setting(
    name="limit_request_body",
    flags=("--limit-request-body",),
    kind=Bytes(),
    default=0,
    core=True,
    section=LIMITS_SECTION,
    own=True,
    help="The maximum size of a request body in bytes; 0 is no limit.",
    doc="A larger one is refused with 413: before it is read if its length is announced, when it is exceeded if not.",
)

FORWARDED_ALLOW_IPS = Setting(
    name="forwarded_allow_ips",
    flags=("--forwarded-allow-ips",),
    env_also=("FORWARDED_ALLOW_IPS",),
    kind=Networks(),
    default="127.0.0.1,::1",
    core=True,
    section=TRUST_SECTION,
    help="Front-end's IP addresses or networks from which allowed to handle set secure headers.",
    doc="`*` believes everybody. Peers on a unix socket are always believed.",
)

SECURE_SCHEME_HEADERS: Setting[Mapping[str, str]] = Setting(
    name="secure_scheme_headers",
    kind=HeaderValues(),
    default=MappingProxyType(
        {"X-FORWARDED-PROTOCOL": "ssl", "X-FORWARDED-PROTO": "https", "X-FORWARDED-SSL": "on"},
    ),
    section=TRUST_SECTION,
    help="Headers, and their values, by which a front end says that the client uses HTTPS.",
    doc="They count only from peers in `forwarded_allow_ips`. Contradictory ones are refused.",
)

FORWARDER_HEADERS: Setting[tuple[str, ...]] = Setting(
    name="forwarder_headers",
    flags=("--forwarder-headers",),
    kind=TextList(metavar="HEADERS"),
    default=("SCRIPT_NAME", "PATH_INFO"),
    section=TRUST_SECTION,
    help="Upper-case header names with an underscore that a front end may set in the environ.",
    doc="They count only from peers in `forwarded_allow_ips`.",
)

HEADER_MAP = Setting(
    name="header_map",
    flags=("--header-map",),
    kind=Choice(("drop", "refuse", "dangerous")),
    default="drop",
    core=True,
    section=TRUST_SECTION,
    help="What to do with header names that contain an underscore: drop, refuse or dangerous.",
    doc="A proxy may take X_USER and X-USER for two names, while WSGI makes one of them; so such fields are "
    "dropped, unless they are in `forwarder_headers`.",
)


def _leniency(name: str, text: str) -> Setting[bool]:
    return Setting(
        name=name,
        flags=("--" + name.replace("_", "-"),),
        action=Action.SET,
        kind=Boolean(),
        default=False,
        core=True,
        section=LENIENCY_SECTION,
        help=text,
    )


PERMIT_OBSOLETE_FOLDING = _leniency(
    "permit_obsolete_folding",
    "Permit requests employing obsolete HTTP line folding mechanism.",
)
STRIP_HEADER_SPACES = _leniency(
    "strip_header_spaces",
    "Strip spaces present between the header name and the `:`.",
)
PERMIT_UNCONVENTIONAL_HTTP_METHOD = _leniency(
    "permit_unconventional_http_method",
    "Permit HTTP methods not matching conventions, such as IANA registration guidelines.",
)
PERMIT_UNCONVENTIONAL_HTTP_VERSION = _leniency(
    "permit_unconventional_http_version",
    "Permit HTTP version not matching conventions of 2023.",
)
CASEFOLD_HTTP_METHOD = _leniency(
    "casefold_http_method",
    "Transform received HTTP methods to uppercase.",
)
