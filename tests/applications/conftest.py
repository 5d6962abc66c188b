"""Applications that people run: `make check-frameworks` makes an environment for each, and says where they are."""

from __future__ import annotations

import os

collect_ignore_glob = [] if os.environ.get("TRICORN_TEST_APPLICATIONS") else ["test_*.py"]
