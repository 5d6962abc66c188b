"""Glue to frameworks. Each module imports its framework, and nothing of the server imports it."""
