"""Source lines of another process's frames, read where that process sees its files."""

from __future__ import annotations

from pathlib import Path

LARGEST = 16 << 20
"""No module is larger: files beyond that are not read."""


class Sources:
    """Each file is read once."""

    def __init__(self, pid: int) -> None:
        self._process = Path(f"/proc/{pid}")
        self._files: dict[str, list[str]] = {}

    def line(self, file: str, number: int) -> str:
        """Returns a line without its indentation; empty if there is no such file or line."""
        if file not in self._files:
            self._files[file] = self._read(file)
        lines = self._files[file]
        return lines[number - 1].strip() if 0 < number <= len(lines) else ""

    def _read(self, file: str) -> list[str]:
        # A name that is not absolute is relative to where the process is, if it has not gone elsewhere since.
        for path in (
            (self._process / "root" / file.lstrip("/"), Path(file))
            if file.startswith("/")
            else (self._process / "cwd" / file,)
        ):
            try:
                if path.is_file() and path.stat().st_size <= LARGEST:
                    return path.read_text("utf-8", "replace").splitlines()
            except OSError:
                continue
        return []
