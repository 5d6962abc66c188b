"""Benchmarks: each answers one question, prints figures and environment, and keeps the raw data in benches/runs."""
