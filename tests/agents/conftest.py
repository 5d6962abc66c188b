"""The real packages of monitoring agents: `make test-agents` makes their environment, and says where it is."""

from __future__ import annotations

import os

collect_ignore_glob = [] if os.environ.get("TRICORN_TEST_AGENTS") else ["test_*.py"]
