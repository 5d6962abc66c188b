"""The exceptions of gunicorn's parser, for `except` and `isinstance`: this server's parser raises none of them."""

from __future__ import annotations

from tricorn.compat.absent import refuse


class ParseException(Exception):
    """A request that cannot be understood."""


class NoMoreData(OSError): ...


class ConfigurationProblem(ParseException): ...


class InvalidRequestLine(ParseException): ...


class InvalidRequestMethod(ParseException): ...


class ExpectationFailed(ParseException): ...


class InvalidHTTPVersion(ParseException): ...


class InvalidHeader(ParseException): ...


class ObsoleteFolding(ParseException): ...


class InvalidHeaderName(ParseException): ...


class InvalidResponseHeader(InvalidHeader): ...


class InvalidResponseHeaderName(InvalidHeaderName): ...


class UnsupportedTransferCoding(ParseException): ...


class InvalidChunkSize(ParseException): ...


class ChunkMissingTerminator(ParseException): ...


class InvalidChunkExtension(ParseException): ...


class LimitRequestLine(ParseException): ...


class LimitRequestHeaders(ParseException): ...


class InvalidProxyLine(ParseException): ...


class InvalidProxyHeader(ParseException): ...


class ForbiddenProxyRequest(ParseException): ...


class InvalidSchemeHeaders(ParseException): ...


__getattr__ = refuse(__name__)
