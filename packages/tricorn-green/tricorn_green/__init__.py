"""Greenlet support for tricorn: worker classes, patching, drivers, and calls in threads (`offload`)."""
