"""The public name of `tricorn_bench.load`."""

from __future__ import annotations

from tricorn import extensions

__getattr__ = extensions.module("load")
