"""Integrations with frameworks. Each module imports its framework; the server imports none of them."""
