"""The service that connectconformance asks, by Connect for Python (connectrpc). Its `messages` are generated
(test_connect.py)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from typing import Any, TypeVar

from connectrpc.code import Code
from connectrpc.codec import proto_binary_codec, proto_json_codec
from connectrpc.compression.gzip import GzipCompression
from connectrpc.errors import ConnectError
from messages.connectrpc.conformance.v1 import config_pb, service_connect, service_pb
from protobuf import Oneof, Registry
from protobuf.wkt import Any as Packed

T = TypeVar("T")


class Service:
    """Each answer is what its request defines, with what was seen of the request."""

    async def unary(self, request: Any, context: Any) -> Any:
        return await self._answer(request.response_definition, [request], context, service_pb.UnaryResponse)

    async def idempotent_unary(self, request: Any, context: Any) -> Any:
        return await self._answer(request.response_definition, [request], context, service_pb.IdempotentUnaryResponse)

    async def client_stream(self, requests: AsyncIterator[Any], context: Any) -> Any:
        got = [request async for request in requests]
        definition = got[0].response_definition if got else None
        return await self._answer(definition, got, context, service_pb.ClientStreamResponse)

    async def server_stream(self, request: Any, context: Any) -> AsyncIterator[Any]:
        definition = request.response_definition or service_pb.StreamResponseDefinition()
        announce(definition, context)
        async for response in self._stream(definition, [request], context, service_pb.ServerStreamResponse):
            yield response

    async def bidi_stream(self, requests: AsyncIterator[Any], context: Any) -> AsyncIterator[Any]:
        """Full duplex: an answer to each request. Half duplex: all of them after the last request."""
        definition, got, answered = None, [], 0
        async for request in requests:
            if definition is None:
                definition = request.response_definition or service_pb.StreamResponseDefinition()
                full_duplex = request.full_duplex
                announce(definition, context)
            got.append(request)
            if not full_duplex:
                continue
            if answered >= len(definition.response_data):
                break
            await asyncio.sleep(definition.response_delay_ms / 1000)
            info = seen(context, got)
            yield response_of(service_pb.BidiStreamResponse, definition.response_data[answered], info)
            answered, got = answered + 1, []
        if definition is None:
            return
        async for response in self._stream(definition, got, context, service_pb.BidiStreamResponse, answered):
            yield response

    async def unimplemented(self, request: Any, context: Any) -> Any:
        raise ConnectError(Code.UNIMPLEMENTED, "this method is for that")

    async def _answer(self, definition: Any, requests: list[Any], context: Any, kind: Callable[..., T]) -> T:
        definition = definition or service_pb.UnaryResponseDefinition()
        announce(definition, context)
        info = seen(context, requests)
        await asyncio.sleep(definition.response_delay_ms / 1000)
        match definition.response:
            case Oneof("error", error):
                raise failure(error, info)
            case Oneof("response_data", data):
                return response_of(kind, data, info)
        return response_of(kind, b"", info)

    async def _stream(
        self, definition: Any, requests: list[Any], context: Any, kind: Callable[..., Any], answered: int = 0
    ) -> AsyncIterator[Any]:
        """The answers from `answered` on. The first of all has what was seen of the requests, or the error has it."""
        info = seen(context, requests)
        for number, data in enumerate(definition.response_data):
            if number >= answered:
                await asyncio.sleep(definition.response_delay_ms / 1000)
                yield response_of(kind, data, None if number else info)
        if definition.error:
            raise failure(definition.error, None if definition.response_data else info)


def announce(definition: Any, context: Any) -> None:
    for kind, fields in (
        (context.response_headers, definition.response_headers),
        (context.response_trailers, definition.response_trailers),
    ):
        for field in fields:
            for value in field.value:
                kind.add(field.name, value)


def seen(context: Any, requests: list[Any]) -> Any:
    info = service_pb.ConformancePayload.RequestInfo(requests=[Packed.pack(request) for request in requests])
    if context.timeout_ms is not None:
        info.timeout_ms = int(context.timeout_ms)
    for name in context.request_headers:
        values = list(context.request_headers.getall(name))
        info.request_headers.append(service_pb.Header(name=name, value=values))
    return info


def response_of(kind: Callable[..., T], data: bytes, info: Any) -> T:
    payload = service_pb.ConformancePayload(data=data)
    if info is not None:
        payload.request_info = info
    return kind(payload=payload)


def failure(error: Any, info: Any) -> ConnectError:
    code = Code[config_pb.Code(error.code).name]
    return ConnectError(code, error.message, details=[*error.details, *([] if info is None else [info])])


LIMIT = os.environ.get("MESSAGE_LIMIT")
OPTIONS: dict[str, Any] = {
    "read_max_bytes": int(LIMIT) if LIMIT else None,
    "compressions": [GzipCompression()],
    "codecs": [proto_binary_codec(), proto_json_codec(Registry(service_pb.desc()))],
}
application = service_connect.ConformanceServiceASGIApplication(Service(), **OPTIONS)
