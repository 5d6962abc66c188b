"""The arrows between the crates, checked over `cargo metadata` and `cargo tree`.

    proto  <-  io    <-  py
           <-  load  <-
               doctor <-

A crate is a permission set. tricorn-proto is pure: a few parsers and nothing that could reach a socket, a clock, a
thread or Python. tricorn-io may ask the operating system, never Python. Only tricorn-py names pyo3. tricorn-load is a
client: it shares the protocol with the server, and nothing else. tricorn-doctor reads processes: neither sockets nor
Python's API, of which it knows only where the interpreter keeps what in memory.

Besides, of every package in Cargo.lock: its licence permits to ship it under MIT, and it comes from crates.io.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent

# Everything each crate may name in [dependencies]: adding one is a decision, made here and explained in the commit.
ALLOWED = {
    "tricorn-proto": {"httparse", "memchr", "itoa", "flate2", "sha1_smol"},
    "tricorn-io": {"tricorn-proto", "tricorn-doctor", "rustix", "libc", "serde_json", "rustls", "aws-lc-rs"},
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

# Nowhere in the tree that is shipped, not even through others.
FORBIDDEN_ANYWHERE = {
    "tokio": "the reactor is ours; a runtime brings threads of its own",
    "mio": "listeners shared by workers need EPOLLEXCLUSIVE",
    "hyper": "one exchange machine",
    "openssl-sys": "wheels must not depend on the system's OpenSSL",
    "lazy_static": "no global mutable state in the core",
}

# A package may be used under one of these. Licences that ask more of a distributor than a notice are not among them.
LICENCES = {
    "MIT",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
}
SOURCE = "registry+https://github.com/rust-lang/crates.io-index"


def metadata() -> dict[str, Any]:
    command = ["cargo", "metadata", "--format-version", "1", "--locked"]
    result: dict[str, Any] = json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout)
    return result


def linked(crate: str) -> set[str]:
    """Returns the names of all packages that are linked into `crate`: normal dependencies, at any depth.

    `cargo metadata` does not tell: it also has optional packages that a weak feature names (`x509-parser?/verify-aws`).
    """
    command = [
        "cargo",
        "tree",
        "--locked",
        "--package",
        crate,
        "--edges",
        "normal",
        "--prefix",
        "none",
        "--format",
        "{p}",
    ]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return {line.split()[0] for line in done.stdout.splitlines() if line} - {crate}


def permitted(licence: str | None) -> bool:
    """Whether an SPDX expression can be met: one of its `OR` choices, with each of that choice's `AND` parts."""
    text = (licence or "").replace("/", " OR ").replace("(", " ( ").replace(")", " ) ")
    # A choice in parentheses counts as one part; no package here nests deeper.
    for group in re.findall(r"\( (.*?) \)", text):
        text = text.replace(f"( {group} )", "MIT" if permitted(group) else "refused")
    choices = [choice.split(" AND ") for choice in text.split(" OR ")]
    return any(all(" ".join(part.split()) in LICENCES for part in choice) for choice in choices)


def supply(tree: dict[str, Any]) -> list[str]:
    """What speaks against a package whatever it does: its licence, and where it is from."""
    found = []
    for package in tree["packages"]:
        name, own = f"{package['name']} {package['version']}", package["id"] in tree["workspace_members"]
        if not permitted(package["license"]):
            found.append(f"{name} has the licence {package['license']!r}, which scripts/check_crates.py does not list")
        if not own and package["source"] != SOURCE:
            found.append(f"{name} comes from {package['source']}, not from crates.io")
    return found


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
        reached = linked(crate)
        if crate != "tricorn-py":
            found += [f"{crate} reaches {name}" for name in sorted(reached & {"pyo3", "pyo3-ffi"})]
        found += [
            f"{crate} reaches {name}: {FORBIDDEN_ANYWHERE[name]}"
            for name in sorted(reached & FORBIDDEN_ANYWHERE.keys())
        ]
    return found


def main() -> int:
    tree = metadata()
    found = problems(tree) + supply(tree)
    print(
        "\n".join(found) or "proto <- io <- py, proto <- load <- py, doctor <- io: kept; licences and sources as listed"
    )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
