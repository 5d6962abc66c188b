"""Frames, a relay with a delay, and the tables of benches.http2."""

from __future__ import annotations

import socket
import threading
import time

import pytest

from benches.harness.process import DidNotServe
from benches.http2.attacks import ATTACKS, attack
from benches.http2.frames import (
    DATA,
    END_STREAM,
    HEADERS,
    PREFACE,
    SETTINGS,
    WINDOW_UPDATE,
    fields,
    frame,
    frames,
    head,
)
from benches.http2.idle import Crowd
from benches.http2.upload import WINDOW, Relay, upload
from benches.render.http2 import attacked, noticed


def test_frames_are_read_in_any_pieces() -> None:
    sent = [(DATA, END_STREAM, 3, b"abc"), (SETTINGS, 0, 0, b""), (HEADERS, 4, 5, bytes(300))]
    wire = b"".join(frame(*one) for one in sent)
    ours, theirs = socket.socketpair()

    def drip() -> None:
        for at in range(0, len(wire), 7):
            theirs.sendall(wire[at : at + 7])
        theirs.close()

    threading.Thread(target=drip).start()
    with ours:
        assert list(frames(ours)) == sent


def test_a_relay_holds_every_byte_back() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        Relay(listener.getsockname()[1], 0.05) as relay,
        socket.create_connection(("127.0.0.1", relay.port)) as client,
        listener.accept()[0] as far,
    ):
        begin = time.monotonic()
        client.sendall(b"there")
        assert far.recv(10) == b"there"
        far.sendall(b"and back")
        assert client.recv(10) == b"and back"
        assert time.monotonic() - begin >= 0.1
        client.shutdown(socket.SHUT_WR)
        assert far.recv(10) == b""


def test_an_upload_keeps_to_the_windows() -> None:
    def serve() -> None:
        with listener.accept()[0] as connection:
            assert connection.recv(len(PREFACE), socket.MSG_WAITALL) == PREFACE
            connection.sendall(frame(SETTINGS, 0, 0))
            received = 0
            for kind, flags, stream, payload in frames(connection):
                if kind == DATA:
                    received += len(payload)
                    windows.append(WINDOW + given[0] - received)
                    if received == WINDOW + given[0] and not flags & END_STREAM:
                        given[0] += 1000
                        connection.sendall(
                            b"".join(frame(WINDOW_UPDATE, 0, id_, b"\0\0\x03\xe8") for id_ in (0, stream))
                        )
                if flags & END_STREAM and kind in (DATA, HEADERS):
                    connection.sendall(frame(HEADERS, 4, 1, b"\x88") + frame(DATA, END_STREAM, 1, b"%d" % received))

    windows, given = list[int](), [0]
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, daemon=True).start()
        assert upload(listener.getsockname()[1], WINDOW + 2500) > 0
    assert min(windows) == 0
    assert given == [3000]


def test_a_server_that_closes_did_not_serve() -> None:
    def close() -> None:
        for _ in range(2):
            listener.accept()[0].close()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=close, daemon=True).start()
        with pytest.raises((DidNotServe, OSError)):
            upload(listener.getsockname()[1], 1 << 20)
        with pytest.raises(DidNotServe, match="connection 1"), Crowd(listener.getsockname()[1], 2):
            pass


@pytest.mark.parametrize("name", ATTACKS)
def test_attacks_begin_a_connection_and_go_on(name: str) -> None:
    pieces = ATTACKS[name]()
    begin = next(pieces)
    assert begin.startswith(PREFACE)
    assert len(begin + next(pieces)) > 100


def test_an_attack_goes_on_over_another_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def refuse() -> None:
            for _ in range(3):
                listener.accept()[0].close()
            kept.append(listener.accept()[0])

        kept = list[socket.socket]()
        thread = threading.Thread(target=refuse, daemon=True)
        thread.start()
        sent = attack(listener.getsockname()[1], lambda: iter([PREFACE, *[head(1, fields())] * 10_000_000]), 2.0)
        assert sent.connections >= 2
        assert sent.bytes > len(PREFACE)
        for each in kept:
            each.close()


def test_tables_have_the_medians_and_say_what_did_not_answer() -> None:
    rounds = {"a": [{f"{name}: {what}": 7.0 for name in ATTACKS for what in ("CPU ns/byte", "MiB")}]}
    rounds["b"] = [dict.fromkeys(rounds["a"][0], None)]
    lines = attacked(rounds).splitlines()
    assert "| 7, 7 " in lines[2]
    assert "does not answer any more" in lines[2]
    assert len(lines) == 2 + len(ATTACKS)
    data = {
        "fair": {"rounds": {"a": [{"p99 ms alone": n, "p99 ms beside 100 streams": 10 * n} for n in (1, 2, 9)]}},
        "upload": {"rounds": {"c": [{"seconds": 1.5}]}},
        "idle": {"rounds": {}},
    }
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in noticed(data).splitlines()[2:]]
    assert cells == [["a", "2", "20", "–", "–"], ["c", "–", "–", "1.5", "–"]]
