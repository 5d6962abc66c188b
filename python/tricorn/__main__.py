"""`python -m tricorn`."""

from __future__ import annotations

import sys

from tricorn.cli import main

if __name__ == "__main__":
    sys.exit(main())
