"""Is the baton held for a short time? Tests against a build of the core that measures each hold.

    python tests/baton.py [--build | --report] [pytest's arguments]

The core is built with the feature `baton-tracking`: it tells in stderr of each hold that takes more than a millisecond
of processor time, and tests fail whose server does so. `--build` stops there. `--report` has each worker write what was
measured of every place in the source that takes the baton.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILT = ROOT / "target/tracking"
PACKAGES = BUILT / "python"
TESTS = (
    "tests/integration/test_baton.py",
    "tests/integration/test_uploads.py",
    "tests/integration/test_response_buffering.py",
    "tests/integration/test_admin.py",
)
"""Much work for the reactor at once."""


def build() -> None:
    """Makes a package like the one in python/, but for the core."""
    command = ["cargo", "build", "--quiet", "--profile", "tracking", "--package", "tricorn-py"]
    subprocess.run([*command, "--features", "baton-tracking"], cwd=ROOT, check=True)
    package = PACKAGES / "tricorn"
    package.mkdir(parents=True, exist_ok=True)
    for entry in package.iterdir():
        entry.unlink()
    for entry in (ROOT / "python/tricorn").iterdir():
        if not entry.name.startswith(("_core.", "__pycache__")) or entry.suffix == ".pyi":
            (package / entry.name).symlink_to(entry)
    core = package / f"_core{sysconfig.get_config_var('EXT_SUFFIX')}"
    core.symlink_to(BUILT / "libtricorn_py.so")


def main(arguments: list[str]) -> int:
    build()
    if "--build" in arguments:
        return 0
    environment = {**os.environ, "PYTHONPATH": str(PACKAGES), "TRICORN_TEST_TRACKED": "1"}
    if "--report" in arguments:
        environment["TRICORN_BATON_REPORT"] = "1"
    chosen = [word for word in arguments if word != "--report"]
    return subprocess.call([sys.executable, "-m", "pytest", *(chosen or ["-q", *TESTS])], cwd=ROOT, env=environment)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
