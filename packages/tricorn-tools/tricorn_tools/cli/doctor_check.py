"""`tricorn doctor check APP`: loads the application as a worker would, and examines it without traffic."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from typing import Any

from tricorn import compat
from tricorn.cli import inspection
from tricorn.compat.assigned import FileSources
from tricorn.errors import ExitCode, TricornError
from tricorn.workers import boot_failure
from tricorn_tools.doctor import check
from tricorn_tools.doctor.check import report
from tricorn_tools.doctor.check.finding import Finding, Severity
from tricorn_tools.doctor.check.scene import Scene, Threads

HELP = """\
usage: tricorn doctor check [--json] [--connect] [settings...] APP

Loads the application as a worker would and reports what will block its requests: libraries that block this worker
class, modules imported too early, database connections, file descriptors, CPUs, threads lost in a fork. No port is
bound and no worker is started.

  --json       print the findings as JSON
  --connect    connect to the databases and ask for their connection limits

All settings of `tricorn` apply: flags, environment variables, configuration files (`tricorn --help`).
Exit status: 0 no findings or only notes, 1 warnings or errors, 2 usage error.
"""


def main(words: Sequence[str]) -> int:
    if {"-h", "--help"} & set(words):
        print(HELP, end="")
        return 0
    own = {word for word in words if word in ("--json", "--connect")}
    as_json = "--json" in own
    compat.install()
    uri: str | None = None
    try:
        with redirect_stdout(sys.stderr):  # what the application prints is no part of the report
            loaded = FileSources.here([word for word in words if word not in own]).load()
            for warning in loaded.warnings:
                print(f"Warning: {warning}", file=sys.stderr)
            uri = loaded.config.wsgi_app or ""
            scene = _scene(loaded.config)
            findings = check.examine(scene, connect="--connect" in own)
    except TricornError as error:
        return _failed(str(error), error.report, as_json=as_json)
    except (Exception, SystemExit) as error:
        if uri is None:
            raise  # argparse's; nothing of the application has run
        text = f"Could not load the application: {type(error).__name__}: {error}"
        loading, application = error, uri
        return _failed(text, lambda: boot_failure.report(loading, application), as_json=as_json)
    if as_json:
        print(json.dumps(report.as_json(scene, findings), indent=2))
    else:
        print(report.text(scene, findings))
    return _end(report.status(findings))


def _scene(config: Any) -> Scene:
    collector = _Collector()
    threads = Threads()
    inspected = inspection.load(config, collector)
    return Scene(inspected.config, inspected.worker_class, tuple(collector.said), threads.new())


class _Collector:
    """Log that collects warnings."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def debug(self, message: str, *args: object) -> None:
        """Nothing to tell."""

    info = debug

    def warning(self, message: str, *args: object) -> None:
        text = message % args
        if text not in self.said:
            self.said.append(text)


def _failed(text: str, tell: Callable[[], object], *, as_json: bool) -> int:
    if as_json:
        finding = Finding("application", Severity.ERROR, text, "Run tricorn --check-config to see where it fails.")
        print(json.dumps(report.failure(finding), indent=2))
    else:
        tell()
    return _end(ExitCode.CONFIG)


def _end(status: int) -> int:
    """Threads of the application's must not keep the process from ending."""
    if any(not thread.daemon for thread in threading.enumerate() if thread is not threading.main_thread()):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    return status
