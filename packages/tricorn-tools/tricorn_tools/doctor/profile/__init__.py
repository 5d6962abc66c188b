"""Sampling profiler of a running server: time per route and worker."""
