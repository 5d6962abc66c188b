"""An application whose module cannot be imported."""

from __future__ import annotations

raise RuntimeError("import marker: this module does not load")
