"""What a request may look like, and whose word about it is believed."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tricorn.config.setting import Section, Setting
from tricorn.config.validators import Boolean, Bytes, Choice, HeaderValues, Integer, Networks, TextList


def _leniency(text: str) -> Setting[bool]:
    return Setting(kind=Boolean(), default=False, core=True, help=text)


class Limits(Section):
    SECTION = "Security"

    limit_request_line = Setting(
        kind=Integer(),
        default=4094,
        core=True,
        help="The maximum size of HTTP request line in bytes; 0 is the largest there is.",
        doc="A longer one is answered with 414.",
    )

    limit_request_fields = Setting(
        kind=Integer(),
        default=100,
        core=True,
        help="Limit the number of HTTP headers fields in a request; 0 is the largest there is.",
        doc="A request with more is answered with 431.",
    )

    limit_request_field_size = Setting(
        flags=("--limit-request-field_size",),  # the odd underscore is gunicorn's
        kind=Integer(),
        default=8190,
        core=True,
        help="Limit the allowed size of an HTTP request header field; 0 is the largest there is.",
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

    forwarded_allow_ips = Setting(
        env_also=("FORWARDED_ALLOW_IPS",),
        kind=Networks(),
        default="127.0.0.1,::1",
        core=True,
        help="Front-end's IP addresses or networks from which allowed to handle set secure headers.",
        doc="`*` believes everybody. Peers on a unix socket are always believed.",
    )

    secure_scheme_headers: Setting[Mapping[str, str]] = Setting(
        flags=(),
        kind=HeaderValues(),
        default=MappingProxyType(
            {"X-FORWARDED-PROTOCOL": "ssl", "X-FORWARDED-PROTO": "https", "X-FORWARDED-SSL": "on"},
        ),
        help="Headers, and their values, by which a front end says that the client uses HTTPS.",
        doc="They count only from peers in `forwarded_allow_ips`. Contradictory ones are refused.",
    )

    forwarder_headers: Setting[tuple[str, ...]] = Setting(
        kind=TextList(metavar="HEADERS"),
        default=("SCRIPT_NAME", "PATH_INFO"),
        help="Upper-case header names with an underscore that a front end may set in the environ.",
        doc="They count only from peers in `forwarded_allow_ips`.",
    )

    header_map = Setting(
        kind=Choice(("drop", "refuse", "dangerous")),
        default="drop",
        core=True,
        help="What to do with header names that contain an underscore: drop, refuse or dangerous.",
        doc="A proxy may take X_USER and X-USER for two names, while WSGI makes one of them; so such fields are "
        "dropped, unless they are in `forwarder_headers`.",
    )


class Leniency(Section):
    SECTION = "Leniency"

    permit_obsolete_folding = _leniency("Permit requests employing obsolete HTTP line folding mechanism.")

    strip_header_spaces = _leniency("Strip spaces present between the header name and the `:`.")

    permit_unconventional_http_method = _leniency(
        "Permit HTTP methods not matching conventions, such as IANA registration guidelines.",
    )

    permit_unconventional_http_version = _leniency("Permit HTTP version not matching conventions of 2023.")

    casefold_http_method = _leniency("Transform received HTTP methods to uppercase.")
