"""The same configuration with a logger of its own, which is told how long a request took."""

from __future__ import annotations

import os
import sys
from typing import Any

from gunicorn.glogging import Logger

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from conf import post_request, pre_request  # noqa: F401


class Telling(Logger):
    def access(self, resp: Any, req: Any, environ: Any, request_time: Any) -> None:
        own = [value for name, value in resp.headers if name.lower() == "x-policy"]
        micros = round(request_time.total_seconds() * 1e6)
        self.info("access %s %s %s %s %s", req.path, resp.status_code, resp.sent, own, micros)


logger_class = Telling
