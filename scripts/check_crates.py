"""The arrows between the crates: what each may name in [dependencies].

    sys    <-  figures  <-  diagnosis  <-  io  <-  py
    proto  <-'              doctor  <-'
           <-  load  <-------------------------'

A crate is a permission set. tricorn-proto is pure: a few parsers and nothing that could reach a socket, a clock, a
thread or Python. tricorn-sys has the clock and the system calls for which there is no safe wrapper, and names none of
the others. tricorn-figures may map memory and write text: it meets no client. tricorn-diagnosis reads the memory of
its own process, and knows no engine. tricorn-io serves clients, without unsafe code and without Python. Only
tricorn-py names pyo3. tricorn-load is a client: it shares the protocol with the server, and nothing else.
tricorn-doctor reads processes: neither sockets nor Python's API, of which it knows only where the interpreter keeps
what in memory.

No tool does it: cargo-deny (deny.toml) has lists for the whole workspace, not one for each crate.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent

# Adding a dependency is a decision, made here and explained in the commit.
ALLOWED = {
    "tricorn-proto": {"httparse", "memchr", "itoa", "flate2", "sha1_smol"},
    "tricorn-sys": {"rustix", "libc"},
    "tricorn-figures": {"tricorn-proto", "tricorn-sys", "rustix", "serde_json", "siphasher"},
    "tricorn-diagnosis": {"tricorn-sys", "tricorn-figures", "tricorn-doctor", "rustix", "serde_json"},
    "tricorn-io": {
        "tricorn-proto",
        "tricorn-sys",
        "tricorn-figures",
        "tricorn-diagnosis",
        "tricorn-doctor",
        "rustix",
        "rustls",
        "aws-lc-rs",
        "flate2",
        "brotli",
        "zstd-safe",
        "self_cell",
    },
    "tricorn-py": {"tricorn-proto", "tricorn-io", "tricorn-load", "tricorn-doctor", "pyo3", "rcgen", "rustc-hash"},
    "tricorn-load": {
        "tricorn-proto",
        "rustix",
        "serde",
        "serde_json",
        "hdrhistogram",
        "base64",
        "rustls",
        "rustls-native-certs",
    },
    "tricorn-doctor": {"framehop", "object", "rustc-demangle", "rustix", "libc", "serde", "serde_json"},
}


def problems(tree: dict[str, Any]) -> list[str]:
    found = []
    for package in tree["packages"]:
        crate = package["name"]
        direct = {dependency["name"] for dependency in package["dependencies"] if dependency["kind"] is None}
        if crate not in ALLOWED:
            found.append(f"{crate}: a new crate needs an entry in scripts/check_crates.py")
        else:
            found += [f"{crate} may not depend on {name}" for name in sorted(direct - ALLOWED[crate])]
    return found


def main() -> int:
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--no-deps"]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    found = problems(json.loads(done.stdout))
    print("\n".join(found) or "each crate depends on what it may")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
