"""Gives tricorn's distributions one version, the server's, and has each need exactly that one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

SERVER = Path(__file__).resolve().parent.parent / "python/tricorn/version.py"


class CustomMetadataHook(MetadataHookInterface):
    """See `[tool.hatch.metadata.hooks.custom]` of each pyproject.toml."""

    def update(self, metadata: dict[str, Any]) -> None:
        found = re.search(r'^__version__ = "(.+)"$', SERVER.read_text(), re.MULTILINE)
        assert found is not None
        metadata["version"] = found[1]
        metadata["dependencies"] = [f"tricorn=={found[1]}", *self.config.get("dependencies", ())]
