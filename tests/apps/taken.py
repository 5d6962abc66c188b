"""Connections that an application takes (`gunicorn.socket`), and what it finds out before. `/pid` names the worker."""

from __future__ import annotations

import ctypes
import json
import os
import socket
from collections.abc import Iterable
from typing import Any
from urllib.parse import parse_qsl

Environ = dict[str, Any]


def answered(start_response: Any, facts: object) -> Iterable[bytes]:
    body = json.dumps(facts).encode()
    start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
    return [body]


def session(sock: Any) -> dict[str, Any]:
    """What is known of the client's session, and what its connection is called."""
    certificate, binary = sock.getpeercert(), sock.getpeercert(True)
    return {
        "certificate": certificate,
        "binary": binary if binary is None else binary.hex(),
        "cipher": sock.cipher(),
        "version": sock.version(),
        "alpn": sock.selected_alpn_protocol(),
        "names": [sock.getpeername(), sock.getsockname()],
    }


def facts(environ: Environ, start_response: Any) -> Iterable[bytes]:
    """Nothing is taken: the answer goes by way of the server."""
    return answered(start_response, session(environ["gunicorn.socket"]))


def asks(environ: Environ, start_response: Any) -> Iterable[bytes]:
    """What libraries look for that know TLS. A plain connection has none of it, and stays the server's."""
    sock = environ["gunicorn.socket"]
    names = ("getpeercert", "cipher", "version", "selected_alpn_protocol", "__len__")
    return answered(start_response, [name for name in names if hasattr(sock, name)])


def tells(environ: Environ, start_response: Any) -> Iterable[bytes]:
    """The same as `/facts`, of a socket that is taken."""
    sock = environ["gunicorn.socket"]
    sock.sendall(b"taken\r\n")
    told = session(sock) | {"is_open": sock.fileno() >= 0, "end": sock.recv(1, socket.MSG_PEEK).decode()}
    sock.sendall(json.dumps(told).encode() + b"\r\n")
    return []


def echoes(environ: Environ, start_response: Any) -> Iterable[bytes]:
    """Until its client has said all."""
    sock = environ["gunicorn.socket"]
    sock.sendall(b"taken\r\n")
    while piece := sock.recv(65536):
        sock.sendall(piece.upper())
    sock.sendall(b"over\r\n")
    sock.shutdown(socket.SHUT_WR)
    sock.close()
    return []


def answers(environ: Environ, start_response: Any) -> Iterable[bytes]:
    """By way of the server, behind what it has sent itself."""
    environ["gunicorn.socket"].sendall(b"taken\r\n")
    return answered(start_response, "and HTTP")


def floods(environ: Environ, start_response: Any) -> Iterable[bytes]:
    """So many bytes, and nothing is waited for."""
    count = int(dict(parse_qsl(environ["QUERY_STRING"]))["count"])
    sock = environ["gunicorn.socket"]
    sock.sendall(b"taken\r\n" + b"x" * count)
    return []


def hears_nothing(environ: Environ, start_response: Any) -> Iterable[bytes]:
    """Until the fifo has something; then tells how much has come meanwhile, when its client has said all."""
    sock = environ["gunicorn.socket"]
    sock.sendall(b"taken\r\n")
    with open(dict(parse_qsl(environ["QUERY_STRING"]))["fifo"], "rb") as fifo:
        fifo.read(1)
    count = 0
    while piece := sock.recv(65536):
        count += len(piece)
    sock.sendall(b"%d\r\n" % count)
    return []


def holds_the_gil(environ: Environ, start_response: Any) -> Iterable[bytes]:
    """In C, from its first bytes on until the fifo has something; then tells that so many bytes have come meanwhile."""
    given = dict(parse_qsl(environ["QUERY_STRING"]))
    count, fifo = int(given["count"]), os.open(given["fifo"], os.O_RDONLY)
    sock = environ["gunicorn.socket"]
    sock.sendall(b"taken\r\n" + b"x" * count)
    ctypes.PyDLL(None).read(fifo, ctypes.create_string_buffer(1), 1)
    os.close(fifo)
    sock.setblocking(False)  # what is there by now
    got = sock.recv(count, socket.MSG_PEEK)
    sock.setblocking(True)
    sock.sendall(b"%d\r\n" % len(got))
    return []


def speaks_websocket(environ: Environ, start_response: Any) -> Iterable[bytes]:
    """By simple-websocket, as Flask-Sock has it: messages come back, `bye` is answered with a Close frame."""
    from simple_websocket import ConnectionClosed, Server

    connection = Server.accept(environ, subprotocols=["one"], max_message_size=1 << 21)
    try:
        while True:
            message = connection.receive()
            if message == "bye":
                connection.close(4000, "as asked")
                break
            connection.send(message)
    except ConnectionClosed as closed:
        os.write(1, f"closed {closed.reason}\n".encode())
    raise StopIteration  # what it tells gunicorn


ANSWERS = {
    "/pid": lambda environ, start_response: answered(start_response, os.getpid()),
    "/facts": facts,
    "/asks": asks,
    "/tells": tells,
    "/echoes": echoes,
    "/answers": answers,
    "/floods": floods,
    "/deaf": hears_nothing,
    "/gil": holds_the_gil,
    "/socket": speaks_websocket,
}


def application(environ: Environ, start_response: Any) -> Iterable[bytes]:
    return ANSWERS[environ["PATH_INFO"]](environ, start_response)
