"""What the benchmarks share: pinned processes that always get stopped, exact CPU readings, wrk, and reports."""
