"""Settings of HTTP/2: where it is served, and what one connection may do."""

from __future__ import annotations

from tricorn.config.kinds import Cleartext, HttpProtocols
from tricorn.config.setting import Section, Setting
from tricorn.config.validators import Bytes, Integer, Seconds


class Http2(Section):
    SECTION = "HTTP/2"

    http_protocols: Setting[tuple[str, ...]] = Setting(
        kind=HttpProtocols(),
        default=("h1",),
        core=True,
        help="HTTP versions to serve, preferred first: h1, h2 or both, as in h2,h1.",
        doc="With h2, addresses with TLS offer HTTP/2 in the handshake (ALPN). With h2 alone, clients that offer only "
        "`http/1.1` are rejected there (no_application_protocol). For addresses without TLS see `http2_cleartext`. "
        "Limits of HTTP/1 (`limit_request_line`, `limit_request_fields`, `limit_request_field_size`, "
        "`limit_request_body`) and timeouts (`header_timeout`, `body_timeout`, `write_timeout`) hold for each HTTP/2 "
        "request too. [HTTP/2](../guides/http2.md).",
    )

    http2_cleartext = Setting(
        kind=Cleartext(
            ("off", "prior-knowledge", "both"),
            metavar="MODE",
            on="prior-knowledge",
            off="off",
        ),
        default="off",
        core=True,
        help="Accept HTTP/2 without TLS: off or prior-knowledge.",
        doc="With prior-knowledge, a connection that starts with the HTTP/2 preface (RFC 9113, section 3.3) is HTTP/2, "
        "any other is HTTP/1.1, on the same port. For proxies and platforms that terminate TLS and forward HTTP/2. "
        "Requires h2 in `http_protocols`. gunicorn's `upgrade` is an error: no request is upgraded (`Upgrade: h2c`, "
        "deprecated by RFC 9113, section 3.1). `both` means prior-knowledge, with a warning.",
    )

    http2_max_concurrent_streams = Setting(
        kind=Integer(min=1),
        default=100,
        core=True,
        rare=True,
        help="Maximum number of concurrent requests on an HTTP/2 connection.",
        doc="A request that the client cancels counts until the application has finished with it. Further requests get "
        "RST_STREAM with REFUSED_STREAM, after which clients may retry them.",
    )

    http2_initial_window_size = Setting(
        kind=Integer(min=1),
        default=65_535,
        core=True,
        rare=True,
        help="Flow-control window with which an HTTP/2 request body starts, in bytes.",
        doc="A client may send this much before it is read. The window doubles when half of it has been read, up to "
        "`http2_max_window`.",
    )

    http2_max_header_list_size = Setting(
        kind=Integer(),
        default=65_536,
        core=True,
        rare=True,
        help="Maximum size of the headers of an HTTP/2 request in bytes; 0: the built-in maximum.",
        doc="Counts the decompressed names and values, and 32 bytes for each header (RFC 9113, section 6.5.2). Larger "
        "ones get 431. `limit_request_fields` and `limit_request_field_size` apply too.",
    )

    http2_idle_timeout = Setting(
        kind=Seconds(min=1),
        default=60,
        core=True,
        own=True,
        rare=True,
        help="Seconds to keep an HTTP/2 connection open without a request.",
        doc="Longer than `keepalive`, since one connection carries all requests of a client. Behind a proxy, set it to "
        "more than the proxy's own idle timeout.",
    )

    http2_max_window = Setting(
        kind=Bytes(min=1, max=(1 << 31) - 1),
        default=1 << 20,
        core=True,
        own=True,
        rare=True,
        help="Bytes up to which the flow-control window of an HTTP/2 request body grows.",
        doc="A client sends at most this much per round trip: 1 MiB allows 20 MiB/s at 50 ms. Raise it for large "
        "uploads over long distances. All requests of a connection share a window of this size, of at least 1 MiB.",
    )

    http2_reset_limit = Setting(
        kind=Integer(min=10),
        default=200,
        core=True,
        own=True,
        rare=True,
        help="Number of HTTP/2 requests that a connection may reset at once; a tenth more each second.",
        doc="Counts requests that the client cancels, and those that the server refuses or resets because they are "
        "malformed. Beyond it the connection is closed with ENHANCE_YOUR_CALM (CVE-2023-44487, CVE-2025-8671). Raise "
        "it for clients that cancel many requests, such as gRPC clients with short deadlines.",
    )

    http2_control_limit = Setting(
        kind=Integer(min=10),
        default=1000,
        core=True,
        own=True,
        rare=True,
        help="Number of HTTP/2 frames without content that a connection may send at once; a tenth more each second.",
        doc="Counts PING, SETTINGS, PRIORITY, PRIORITY_UPDATE and unknown frames, window updates that no response "
        "required, and empty DATA frames that do not end a request. Beyond it the connection is closed with "
        "ENHANCE_YOUR_CALM. Raise it for clients that send frequent pings.",
    )
