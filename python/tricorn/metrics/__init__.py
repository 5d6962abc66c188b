"""Metrics of the workers, read from the shared memory that their cores write."""
