"""Measurements of applications: `tricorn bench`, and the load generator `tricorn load`."""
