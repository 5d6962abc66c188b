"""What the servers of this room are configured with: hooks that tell what they are told."""

from __future__ import annotations

from typing import Any


def pre_request(worker: Any, req: Any) -> None:
    if req.path.startswith("/refused-by-hook/"):
        raise RuntimeError(f"policy marker {req.path.rpartition('/')[2]}")


def post_request(worker: Any, req: Any, environ: Any, resp: Any) -> None:
    own = [value for name, value in resp.headers if name.lower() == "x-policy"]
    worker.log.info("post %s %s %s %s", req.path, resp.status_code, resp.sent, own)
