"""`doctor_deep`: the function of native code that computes, of a thread that is halted for a moment."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tricorn.control.client import Control

from tests.harness import Site, until

APPLICATION = """
import os, re, signal, time, zlib
DATA = os.urandom(1 << 20) * 12
def compresses():
    zlib.compress(DATA, 9)
def matches():
    length, took = 18, 0.0
    while took < 0.4:
        length += 1
        begin = time.thread_time()
        re.match("(a+)+b", "a" * length)
        took = time.thread_time() - begin
CALLS = {"/compresses": compresses, "/matches": matches}
def application(environ, start_response):
    CALLS.get(environ["PATH_INFO"], int)()
    start_response("204 No Content", [])
    return []
"""
TAKES_THE_SIGNAL = "signal.signal(signal.SIGRTMIN + 10, lambda *_: None)\n"


def records(server: Site, path: str, verdict: str) -> list[Mapping[str, Any]]:
    """Those of a line with this verdict, once there is one. A busy machine has others at times."""

    def told() -> list[Mapping[str, Any]]:
        server.get(path)
        server.get("/")
        with Control.connect(str(server.directory / "ctl")) as control:
            found = control.ask("stalls", records=True)["records"]
        return [each for each in found if each["function"] == path[1:] and each["verdict"] == verdict]

    return until(told, f"{path} is {verdict}", every=0.2)


def site(more: str, module: str = "") -> Site:
    site = Site("", app="work:application", files={"work.py": APPLICATION + module})
    control = str(site.directory / "ctl")
    site.configure(f"worker_class = 'gevent'\ncontrol_socket = {control!r}\ntimeout = 0\n{more}")
    return site


def test_the_library_and_the_function_that_compute_are_told() -> None:
    with site("doctor_deep = True\n") as server:
        server.get("/")

        def deep(path: str, verdict: str, names: str = "") -> Mapping[str, Any]:
            """A thread that is late to the handler is not waited for. A loop may be halted in another of its calls."""

            def found() -> list[Mapping[str, Any]]:
                halted = (each for each in records(server, path, verdict) if each["library"])
                return [each for each in halted if names in json.dumps(each["c_function"])]

            return until(found, f"{path}: deep, {names}")[0]

        zlib = deep("/compresses", "CPU_NATIVE")
        assert zlib["library"] in ("libz", "zlib"), zlib
        assert f"Running native code of {zlib['library']} (" in zlib["sentence"]
        assert zlib["c_function"]
        # A function of the interpreter is named by what Python called.
        match = deep("/matches", "CPU_NATIVE_GIL", "sre")
        assert match["missing"] is None
        assert server.get("/").status == 204


def test_without_it_no_thread_is_halted() -> None:
    with site("") as server:
        server.get("/")
        (zlib, *_) = records(server, "/compresses", "CPU_NATIVE")
        assert (zlib["library"], zlib["c_function"]) == (None, None)


def test_a_signal_that_the_application_uses_is_left_to_it() -> None:
    with site("doctor_deep = True\n", TAKES_THE_SIGNAL) as server:
        server.get("/")
        (zlib, *_) = records(server, "/compresses", "CPU_NATIVE")
        assert zlib["library"] is None
        assert "doctor_deep needs the signal SIGRTMIN+10, which the application uses" in zlib["missing"]
