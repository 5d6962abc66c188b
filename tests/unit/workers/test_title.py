"""The title of a process, in one of its own: it cannot be taken back, and pytest has changed the environment."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SHOW = """
import sys
from pathlib import Path
from tricorn.workers import title

def shown():
    return Path("/proc/self/cmdline").read_bytes().replace(b"\\0", b" ").decode().strip()

{before}
print(shown() == "tricorn: worker [app:application]" if {set_title} else "python" in shown())
"""


def show(before: str) -> str:
    program = SHOW.format(before=before, set_title="sys.modules.get('setproctitle')")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="titles are read from /proc")
class TestTitle:
    def test_it_is_set_where_setproctitle_is_installed(self) -> None:
        pytest.importorskip("setproctitle")
        assert show("title.set_title('tricorn: worker [app:application]')") == "True"

    def test_also_after_the_environment_was_changed(self) -> None:
        pytest.importorskip("setproctitle")
        changed = "import os; os.environ.update({f'X{n}': 'y' * 100 for n in range(100)})"
        before = f"title.prepare()\n{changed}\ntitle.set_title('tricorn: worker [app:application]')"
        assert show(before) == "True"

    def test_without_it_nothing_changes(self) -> None:
        assert (
            show("sys.modules['setproctitle'] = None\ntitle.set_title('tricorn: worker [app:application]')") == "True"
        )
