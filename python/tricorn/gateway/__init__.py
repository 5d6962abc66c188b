"""How an application is found and called."""

from __future__ import annotations
