"""gunicorn's configuration: what its users add so that psycopg2 lets other greenlets run."""

from __future__ import annotations

from typing import Any


def post_fork(server: Any, worker: Any) -> None:
    from psycogreen.gevent import patch_psycopg  # type: ignore[import-untyped]

    patch_psycopg()
