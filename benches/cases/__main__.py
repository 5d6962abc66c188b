"""How fast is a request, and what does it cost?  python -m benches.cases --help

One worker on one core, the load generator on another, a `tricorn bench` command line for each case: servers take turns,
round after round, and are started anew for each.
"""

from __future__ import annotations

import sys

from benches.cases.table import LINES, write_bodies
from benches.harness import lines

if __name__ == "__main__":
    write_bodies()
    sys.exit(lines.main("benches.cases", __doc__, LINES, "cases"))
