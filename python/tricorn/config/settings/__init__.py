"""The records, one file per group."""

from __future__ import annotations
