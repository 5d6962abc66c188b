"""The configuration of a server that a framework's command becomes: the name of the application."""

from __future__ import annotations

import os

if name := os.environ.get("TRICORN_SERVES"):
    default_proc_name = name
