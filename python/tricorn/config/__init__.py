"""Settings: one record each, read in layers, resolved once."""

from __future__ import annotations
