"""Wheels for release: names of functions without line tables, materials that are linked, no paths of a machine."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from scripts import finish_wheel
from scripts.rendered import ROOT

CORE = "tricorn/_core.cpython-311-x86_64-linux-gnu.so"
RECORD = "tricorn-0.1.0.dist-info/RECORD"
BILL = "tricorn-0.1.0.dist-info/sboms/tricorn-py.cyclonedx.json"
LINKED = {("tricorn-io", "0.1.0"), ("memchr", "2.8.3")}

SOURCE = """
static int a_function_of_the_core(int x) { return x * 3; }
const char *name_of_a_section = ".gnu_debuglink";  /* which the core has as well: it reads such files */
int (*volatile entry)(int) = a_function_of_the_core;
"""


def component(name: str, version: str, reference: str = "") -> dict[str, str]:
    return {"bom-ref": reference or f"registry#{name}", "name": name, "version": version}


MATERIALS = {
    "metadata": {"component": component("tricorn-py", "0.1.0", f"path+file://{ROOT}/crates/tricorn-py#0.1.0")},
    "components": [
        component("tricorn-io", "0.1.0", f"path+file://{ROOT}/crates/tricorn-io#0.1.0"),
        component("memchr", "2.8.3"),
        component("windows-sys", "0.61.2"),
    ],
    "dependencies": [
        {
            "ref": f"path+file://{ROOT}/crates/tricorn-io#0.1.0",
            "dependsOn": ["registry#memchr", "registry#windows-sys"],
        },
        {"ref": "registry#memchr"},
        {"ref": "registry#windows-sys"},
    ],
}


def compiled(folder: Path, source: str = SOURCE) -> bytes:
    if shutil.which("objcopy") is None or shutil.which("cc") is None:
        pytest.skip("there is no compiler, or no binutils")
    (folder / "core.c").write_text(source)
    subprocess.run(["cc", "-g", "-shared", "-fPIC", "-o", "core.so", "core.c"], cwd=folder, check=True)
    return (folder / "core.so").read_bytes()


@pytest.fixture
def core(tmp_path: Path) -> bytes:
    return compiled(tmp_path)


def wheel(folder: Path, core: bytes) -> Path:
    made = folder / "tricorn-0.1.0-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl"
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("tricorn/__init__.py", '__version__ = "0.1.0"\n')
        archive.writestr(CORE, core)
        archive.writestr(BILL, json.dumps(MATERIALS))
        archive.writestr("tricorn-0.1.0.dist-info/METADATA", "Metadata-Version: 2.4\nName: tricorn\nVersion: 0.1.0\n")
        archive.writestr(
            "tricorn-0.1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: py3-none-any\n"
        )
        archive.writestr(RECORD, "")
    return made


@pytest.fixture(autouse=True)
def linked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    asked: list[str] = []

    def crates(target: str) -> set[tuple[str, str]]:
        asked.append(target)
        return LINKED

    monkeypatch.setattr(finish_wheel, "linked_crates", crates)
    return asked


def symbols(core: bytes, folder: Path) -> str:
    (folder / "looked-at").write_bytes(core)
    return subprocess.run(
        ["objdump", "-th", "looked-at"], cwd=folder, capture_output=True, text=True, check=True
    ).stdout


def test_the_core_keeps_names_and_its_line_tables_become_a_file(tmp_path: Path, core: bytes) -> None:
    made = wheel(tmp_path, core)
    finish_wheel.finish(made, tmp_path / "debug")
    shown = symbols(zipfile.ZipFile(made).read(CORE), tmp_path)
    assert "a_function_of_the_core" in shown
    assert ".gnu_debuglink" in shown
    assert ".debug_line" not in shown
    (debug,) = (tmp_path / "debug").iterdir()
    assert debug.name == f"{made.name.removesuffix('.whl')}.debug"
    assert ".debug_line" in symbols(debug.read_bytes(), tmp_path)


def test_a_second_time_changes_nothing(tmp_path: Path, core: bytes) -> None:
    made = wheel(tmp_path, core)
    finish_wheel.finish(made, tmp_path / "debug")
    first, debug = made.read_bytes(), next((tmp_path / "debug").iterdir()).read_bytes()
    finish_wheel.finish(made, tmp_path / "debug")
    assert (made.read_bytes(), next((tmp_path / "debug").iterdir()).read_bytes()) == (first, debug)


def test_the_bill_of_materials_lists_what_is_linked(tmp_path: Path, core: bytes, linked: list[str]) -> None:
    made = wheel(tmp_path, core)
    finish_wheel.finish(made, None)
    bill = json.loads(zipfile.ZipFile(made).read(BILL))
    assert linked == ["x86_64-unknown-linux-gnu"]
    assert [each["name"] for each in bill["components"]] == ["tricorn-io", "memchr"]
    assert bill["dependencies"] == [
        {"ref": "path+file:///crates/tricorn-io#0.1.0", "dependsOn": ["registry#memchr"]},
        {"ref": "registry#memchr", "dependsOn": []},
    ]


def test_pip_installs_what_is_written(tmp_path: Path, core: bytes) -> None:
    made = wheel(tmp_path, core)
    finish_wheel.finish(made, None)
    plain = made.rename(tmp_path / "tricorn-0.1.0-py3-none-any.whl")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--target", str(tmp_path / "there")]
    subprocess.run([*command, str(plain)], check=True)
    assert (tmp_path / "there" / CORE).exists()


def test_paths_of_the_machine_are_refused(tmp_path: Path) -> None:
    source = f'const char *place = "{ROOT}/crates/tricorn-io/src/lib.rs";'
    made = wheel(tmp_path, compiled(tmp_path, source))
    with pytest.raises(
        SystemExit, match=r"tells paths of this machine: .*/crates/tricorn-io/src/lib\.rs in tricorn/_core"
    ):
        finish_wheel.finish(made, None)


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("tricorn-0.1.0-cp313-cp313-musllinux_1_2_aarch64.whl", "aarch64-unknown-linux-musl"),
        ("tricorn-0.1.0-cp310-cp310-manylinux_2_17_x86_64.manylinux2014_x86_64.whl", "x86_64-unknown-linux-gnu"),
        ("tricorn-0.1.0-cp311-cp311-linux_x86_64.whl", "x86_64-unknown-linux-gnu"),
    ],
)
def test_a_wheel_has_its_target_in_its_name(name: str, target: str) -> None:
    assert finish_wheel.target_of(name) == target


def test_the_core_of_this_environment_keeps_the_names_of_its_functions() -> None:
    """Backtraces of panics and `tricorn doctor` show them: the profile must not strip them."""
    core = ROOT / "python/tricorn" / f"_core{sysconfig.get_config_var('EXT_SUFFIX')}"
    shown = subprocess.run(["objdump", "-h", str(core)], capture_output=True, text=True)
    if shown.returncode:
        pytest.skip("there are no binutils")
    listing = subprocess.run(["objdump", "-t", str(core)], capture_output=True, text=True, check=True).stdout
    assert "tricorn_io" in listing
