"""An application that asks others: `/LIBRARY?port=` calls a server on this machine, as its users call it."""

from __future__ import annotations

import importlib
import socket
import urllib.request
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import parse_qs

HOST = "127.0.0.1"


def hello(port: int) -> str:
    return "hello"


def sockets(port: int) -> str:
    with socket.create_connection((HOST, port), timeout=60) as connection:
        connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
        return connection.recv(65536).decode()


def urllib_request(port: int) -> str:
    with urllib.request.urlopen(f"http://{HOST}:{port}/", timeout=60) as answer:
        return str(answer.read().decode())


def requests(port: int) -> str:
    return str(importlib.import_module("requests").get(f"http://{HOST}:{port}/", timeout=60).text)


def urllib3(port: int) -> str:
    return str(importlib.import_module("urllib3").request("GET", f"http://{HOST}:{port}/", timeout=60).data.decode())


def redis(port: int) -> str:
    with importlib.import_module("redis").Redis(HOST, port, protocol=2, socket_timeout=60) as client:
        return str(client.get("key").decode())


def pymysql(port: int) -> str:
    library = importlib.import_module("pymysql")
    try:
        library.connect(host=HOST, port=port, user="guest", connect_timeout=60)
    except library.err.OperationalError as error:
        return str(error)
    return "it came to a connection"


LIBRARIES: dict[str, Callable[[int], str]] = {
    call.__name__: call for call in (hello, sockets, urllib_request, requests, urllib3, redis, pymysql)
}


def application(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    port = int(parse_qs(environ["QUERY_STRING"]).get("port", ["0"])[0])
    body = LIBRARIES[environ["PATH_INFO"].strip("/")](port).encode()
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
    return [body]
