"""The command lines of `tricorn bench` and `tricorn load`."""
