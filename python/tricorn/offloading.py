"""The public name of `tricorn_green.offload`."""

from __future__ import annotations

from tricorn import extensions

__getattr__ = extensions.module("offloading")
