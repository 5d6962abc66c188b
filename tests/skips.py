"""The skips that are allowed, each with what a machine or a combination lacks. Any other one fails the run.

A test that is skipped wherever it runs tests nothing, and a suite that skips what it cannot start passes. Requirements
of tests are installed (requirements/test.in), so a missing package is no reason.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

from tests.cluster import net
from tests.harness.balancers import find_stream_module
from tests.harness.needs import gunicorns_packages
from tests.harness.pythons import MINORS, interpreter, static_interpreter
from tests.harness.server import REFERENCE

COMBINATIONS = (
    "eventlet sets a callback itself when it patches",
    "the framework reads no body that has no length, or undoes the coding a second time",
    ".* has no such thing",
    "a unix socket is needed",
    "the parser of aiohttp knows none",
    "this server asks clients to forget",
)
"""Pairs of a test and a parameter that mean nothing together, whatever the machine."""

PROGRAMS = (
    "zsh", "fish", "openssl", "tmux", "hey", "promtool", "prometheus",
    "nginx", "apache2", "haproxy", "systemd-analyze", "actionlint", "caddy", "curl", "nft", "envoy", "podman",
    "debootstrap", "go", "h2load", "h2spec", "sslyze",
)  # fmt: skip

SECCOMP = tuple(f"/{folder}/libseccomp.so.2" for folder in ("lib64", "usr/lib64", "usr/lib")) + tuple(
    f"/usr/lib/{machine}-linux-gnu/libseccomp.so.2" for machine in ("x86_64", "aarch64")
)
"""Where a dynamic linker finds it; systemd needs it on most distributions."""

CLUSTER = Path(__file__).parent.parent / ".venvs/cluster/bin"
"""What `make test-cluster` installs."""


def lacking() -> list[str]:
    """What this machine cannot offer without its owner: root, programs, another Python."""
    reasons = []
    if os.geteuid() != 0:
        reasons.append("only root can .*")
    if not any(map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))):
        reasons.append("needs a browser: .*")
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin:{CLUSTER}"
    reasons += [f"{program} is not installed" for program in PROGRAMS if not shutil.which(program, path=path)]
    if find_stream_module() is None:
        reasons.append("nginx has no module stream")
    if not (CLUSTER / "python").exists():
        reasons.append("helm is not installed")
    if (reason := net.lacking()) is not None:
        reasons.append(reason)
    if not any(map(os.path.exists, SECCOMP)):
        reasons.append("libseccomp is not installed")
    reasons += [f"Python 3.{minor} is not installed" for minor in (9, *MINORS) if interpreter(minor) is None]
    if static_interpreter() is None:
        reasons.append("no Python is installed that is linked without libpython")
    if not os.path.exists("/proc/net/if_inet6"):
        reasons.append("no IPv6 here")
    if not (Path(__file__).parent.parent / "dist/docs/index.html").exists():
        reasons.append("needs the site: make docs")
    if not os.environ.get("TRICORN_TEST_TRACKED"):
        reasons.append("needs a core that measures the baton: make baton")
    if gunicorns_packages() is None:
        reasons.append("needs gunicorn itself: make test-reference")
    if os.environ.get("TRICORN_TEST_TLS") != "1":
        reasons.append("TRICORN_TEST_TLS=1 asks for it")
    if sys.version_info < (3, 11):
        reasons += ["needs a parser for TOML", "needs grafana-foundation-sdk, which wants Python 3.11"]
    return reasons


ALLOWED = re.compile("|".join((*COMBINATIONS, *lacking())))


def allowed(reason: str) -> bool:
    """Against the reference server everything may be skipped: what it lacks is told where it is tested."""
    return REFERENCE or ALLOWED.fullmatch(reason) is not None
