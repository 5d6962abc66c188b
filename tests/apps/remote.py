"""An application that asks a gRPC server and waits for the answer."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

import grpc

ADDRESS = os.environ["TEST_ADDRESS"]


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    with grpc.insecure_channel(ADDRESS) as channel:
        body = channel.unary_unary("/slow/Wait")(b"0.5", timeout=20)
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]
