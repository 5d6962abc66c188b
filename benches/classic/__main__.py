"""The classical measurements, one `tricorn bench` command line each.  python -m benches.classic --help

The constant, the I/O-bound and the CPU-bound application for 10 to 10,000 users; pure and blended work over the number
of workers; PostgreSQL; what a worker weighs. `--quick` ends in minutes; a run that was ended goes on where it was.
"""

from __future__ import annotations

import sys

from benches.classic.table import LINES
from benches.harness import lines

if __name__ == "__main__":
    sys.exit(lines.main("benches.classic", __doc__, LINES, "classic"))
