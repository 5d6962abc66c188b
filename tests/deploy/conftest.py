"""Images are built by `make test-image` only: that takes minutes, and downloads packages."""

from __future__ import annotations

import os

collect_ignore = [] if os.environ.get("TRICORN_TEST_IMAGE") else ["test_image.py"]
