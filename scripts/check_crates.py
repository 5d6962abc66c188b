"""The arrows between the crates, checked over `cargo metadata`.

    proto  <-  io  <-  py
           <-  load

A crate is a permission set. tricorn-proto is pure: a few parsers and nothing that could reach a socket, a clock, a
thread or Python. tricorn-io may ask the operating system, never Python. Only tricorn-py names pyo3. tricorn-load is a
program for the benchmarks: a client that shares the protocol with the server, and nothing else.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent

# Everything each crate may name in [dependencies]: adding one is a decision, made here and explained in the commit.
ALLOWED = {
    "tricorn-proto": {"httparse", "memchr", "itoa", "flate2", "sha1_smol"},
    "tricorn-io": {"tricorn-proto", "rustix", "libc"},
    "tricorn-py": {"tricorn-proto", "tricorn-io", "pyo3", "rustc-hash"},
    "tricorn-load": {"tricorn-proto", "rustix"},
}

# Nowhere in the tree that is shipped, not even through others.
FORBIDDEN_ANYWHERE = {
    "tokio": "the reactor is ours; a runtime brings threads of its own",
    "mio": "listeners shared by workers need EPOLLEXCLUSIVE",
    "hyper": "one exchange machine",
    "openssl-sys": "wheels must not depend on the system's OpenSSL",
    "lazy_static": "no global mutable state in the core",
}


def metadata() -> dict[str, Any]:
    command = ["cargo", "metadata", "--format-version", "1", "--locked"]
    result: dict[str, Any] = json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout)
    return result


def reachable(tree: dict[str, Any], start: str) -> set[str]:
    """Names of all packages that `start` is linked with: normal dependencies only, at any depth."""
    nodes = {node["id"]: node for node in tree["resolve"]["nodes"]}
    names = {package["id"]: package["name"] for package in tree["packages"]}
    seen: set[str] = set()
    queue = [next(ident for ident, name in names.items() if name == start)]
    while queue:
        for dependency in nodes[queue.pop()]["deps"]:
            is_normal = any(kind["kind"] is None for kind in dependency["dep_kinds"])
            if is_normal and dependency["pkg"] not in seen:
                seen.add(dependency["pkg"])
                queue.append(dependency["pkg"])
    return {names[ident] for ident in seen}


def problems(tree: dict[str, Any]) -> list[str]:
    found = []
    members = set(tree["workspace_members"])
    for package in (package for package in tree["packages"] if package["id"] in members):
        crate = package["name"]
        if crate not in ALLOWED:
            found.append(
                f"{crate}: a new crate needs an entry in scripts/check_crates.py (a crate is a permission set)"
            )
            continue
        direct = {dependency["name"] for dependency in package["dependencies"] if dependency["kind"] is None}
        found += [f"{crate} may not depend on {name}" for name in sorted(direct - ALLOWED[crate])]
        linked = reachable(tree, crate)
        if crate != "tricorn-py":
            found += [f"{crate} reaches {name}" for name in sorted(linked & {"pyo3", "pyo3-ffi"})]
        found += [
            f"{crate} reaches {name}: {FORBIDDEN_ANYWHERE[name]}" for name in sorted(linked & FORBIDDEN_ANYWHERE.keys())
        ]
    return found


def main() -> int:
    found = problems(metadata())
    print("\n".join(found) or "proto <- io <- py, proto <- load: kept")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
