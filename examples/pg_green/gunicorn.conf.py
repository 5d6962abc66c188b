"""Read by tricorn and by gunicorn when they are started in this folder: sees to it that there is a database."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

DATABASE = Path(__file__).with_name("database.py")


def on_starting(server: Any) -> None:
    if "DATABASE_URL" in os.environ:
        return
    # The workers will have the other end, too. When the last process that has it is gone, however it went, the
    # database stops.
    end, _other_end = os.pipe()
    database = subprocess.Popen(
        [sys.executable, DATABASE],
        stdin=end,
        stdout=subprocess.PIPE,
        text=True,
        # Ctrl-C in a terminal goes to the whole group: PostgreSQL has to outlive the requests it serves.
        start_new_session=True,
    )
    os.close(end)
    assert database.stdout is not None
    address = database.stdout.readline().strip()
    if not address:
        raise RuntimeError("the embedded PostgreSQL did not start; set DATABASE_URL to use another one")
    os.environ["DATABASE_URL"] = address
