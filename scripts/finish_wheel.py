"""Makes built wheels ready for release: moves debug information out of them, and corrects their bill of materials.

    python scripts/finish_wheel.py WHEEL... [--debug FOLDER] [--portable FOLDER]

- The core keeps the names of its functions, for backtraces and `tricorn doctor`. Its line tables, two thirds of a
  wheel, go to FOLDER: debuggers find `NAME.debug` there by the link in the core.
- The bill of materials that maturin writes also lists what Cargo only needs to build, or on other systems. It keeps
  what is linked.
- The wheel for systems without the core (`py3-none-any`) is made of the first one: the same modules, metadata and
  commands, without what belongs to the core.
- A wheel that tells paths of the machine that built it is refused: `make wheel` and the release remap them.
"""

from __future__ import annotations

import argparse
import base64
import csv
import hashlib
import io
import json
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent

OF_THE_CORE = re.compile(r"tricorn/_core\..+\.so|.*\.dist-info/sboms/.*")
PORTABLE = "py3-none-any"

Files = dict[zipfile.ZipInfo, bytes]


def main() -> int:
    parser = argparse.ArgumentParser(description="Makes built wheels ready for release.")
    parser.add_argument("wheels", nargs="+", type=Path, metavar="WHEEL")
    parser.add_argument("--debug", type=Path, metavar="FOLDER", help="Where the debug information goes.")
    parser.add_argument("--portable", type=Path, metavar="FOLDER", help="Where the wheel without the core goes.")
    arguments = parser.parse_args()
    for wheel in arguments.wheels:
        before = wheel.stat().st_size
        finish(wheel, arguments.debug)
        print(f"   {wheel.name}: {before / 1e6:.1f} MB -> {wheel.stat().st_size / 1e6:.1f} MB")
    if arguments.portable is not None:
        made = without_core(arguments.wheels[0], arguments.portable)
        print(f"   {made.name}: {made.stat().st_size / 1e6:.1f} MB")
    return 0


def finish(wheel: Path, debug: Path | None) -> None:
    with zipfile.ZipFile(wheel) as archive:
        files: Files = {info: archive.read(info) for info in archive.infolist()}
    linked = linked_crates(target_of(wheel.name))
    for info, data in files.items():
        if re.fullmatch(r"tricorn/_core\.[^/]+\.so", info.filename):
            files[info] = stripped(data, f"{wheel.name.removesuffix('.whl')}.debug", debug)
        elif info.filename.endswith(".cyclonedx.json"):
            files[info] = json.dumps(only(linked, without_paths(json.loads(data))), indent=2).encode()
    paths = sorted({path for info, data in files.items() for path in paths_in(info.filename, data)})
    if paths:
        raise SystemExit(f"{wheel.name} tells paths of this machine: {', '.join(paths[:5])}")
    write(wheel, files)


def target_of(name: str) -> str:
    """The compiler's name of the platform in the name of a wheel.

    >>> target_of("tricorn-0.1.0-cp313-cp313-musllinux_1_2_aarch64.whl")
    'aarch64-unknown-linux-musl'
    """
    found = re.search(r"-(musl|many|)linux_?\w*?_(x86_64|aarch64)(\.|$)", name)
    if found is None:
        raise SystemExit(f"{name}: expected a wheel for Linux on x86_64 or aarch64")
    return f"{found[2]}-unknown-linux-{'musl' if found[1] == 'musl' else 'gnu'}"


def linked_crates(target: str) -> set[tuple[str, str]]:
    """Names and versions of the crates that are linked into the core."""
    command = ["cargo", "tree", "--locked", "-p", "tricorn-py", "-e", "normal", "--prefix", "none", "--target", target]
    listing = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return {(words[0], words[1].removeprefix("v")) for line in listing.splitlines() if len(words := line.split()) > 1}


def only(linked: set[tuple[str, str]], bill: dict[str, Any]) -> dict[str, Any]:
    """The bill of materials without components that are not linked."""
    components = [each for each in bill["components"] if (each["name"], each["version"]) in linked]
    kept = {each["bom-ref"] for each in (*components, bill["metadata"]["component"])}
    dependencies = [
        {**each, "dependsOn": [name for name in each.get("dependsOn", ()) if name in kept]}
        for each in bill["dependencies"]
        if each["ref"] in kept
    ]
    return {**bill, "components": components, "dependencies": dependencies}


def without_paths(bill: dict[str, Any]) -> dict[str, Any]:
    """The bill of materials with the crates of the workspace named by their place in it."""
    text = re.sub(r"file://[^\"#?]*/(?=crates/tricorn-)", "file:///", json.dumps(bill))
    made: dict[str, Any] = json.loads(text)
    return made


def stripped(core: bytes, name: str, folder: Path | None) -> bytes:
    """The core without debug information, which goes to the file `name` in the folder. Once: then there is none."""
    with tempfile.TemporaryDirectory() as work:
        whole, debug, small = Path(work) / "whole", Path(work) / name, Path(work) / "small"
        whole.write_bytes(core)
        sections = subprocess.run(["objdump", "-h", whole], capture_output=True, text=True, check=True).stdout
        if ".gnu_debuglink" in sections:
            return core
        subprocess.run(["objcopy", "--only-keep-debug", "--compress-debug-sections", whole, debug], check=True)
        subprocess.run(["objcopy", "--strip-debug", f"--add-gnu-debuglink={debug}", whole, small], check=True)
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(debug.read_bytes())
        return small.read_bytes()


def without_core(wheel: Path, folder: Path) -> Path:
    """Writes the wheel for systems without the core into the folder. Returns its path."""
    distribution, version, *_ = wheel.name.split("-")
    made = folder / f"{distribution}-{version}-{PORTABLE}.whl"
    with zipfile.ZipFile(wheel) as archive:
        files: Files = {
            info: portable(archive.read(info)) if info.filename.endswith(".dist-info/WHEEL") else archive.read(info)
            for info in archive.infolist()
            if not OF_THE_CORE.fullmatch(info.filename)
        }
    folder.mkdir(parents=True, exist_ok=True)
    write(made, files)
    return made


def portable(metadata: bytes) -> bytes:
    """Returns the file WHEEL of a wheel for every system (PyPA specification, "Binary distribution format")."""
    lines = [line for line in metadata.decode().splitlines() if not line.startswith(("Tag:", "Root-Is-Purelib:"))]
    return "\n".join([*lines, "Root-Is-Purelib: true", f"Tag: {PORTABLE}", ""]).encode()


def paths_in(name: str, data: bytes) -> Iterator[str]:
    """Yields the paths in a file of the wheel that lead into this checkout, a home, or Cargo's sources."""
    if not name.endswith((".so", ".json")):
        return
    for prefix in (f"{ROOT}/", f"{Path.home()}/", "/root/", "/home/", "/usr/local/cargo/"):
        for found in re.finditer(re.escape(prefix.encode()) + rb"[\x21-\x7e]*", data):
            yield f"{found[0].decode()} in {name}"


def write(wheel: Path, files: Files) -> None:
    """Writes the archive anew, with sizes and digests of what is in it."""
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for info, data in files.items():
            made = record(files) if info.filename.endswith(".dist-info/RECORD") else data
            archive.writestr(info, made, zipfile.ZIP_DEFLATED, 9)


def record(files: Files) -> bytes:
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    for info, data in files.items():
        if info.filename.endswith(".dist-info/RECORD"):
            rows.writerow([info.filename, "", ""])
        elif not info.is_dir():
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            rows.writerow([info.filename, f"sha256={digest}", len(data)])
    return text.getvalue().encode()


if __name__ == "__main__":
    sys.exit(main())
