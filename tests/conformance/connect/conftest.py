"""Connect for Python, and what generates its messages: `make test-connect` makes an environment of them."""

from __future__ import annotations

import os

collect_ignore_glob = [] if os.environ.get("TRICORN_TEST_CONNECT") else ["test_*.py"]
