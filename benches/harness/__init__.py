"""What the benchmarks share: pinned processes that always get stopped, load, and reports."""
