"""Raw data as JSON and a page in Markdown, in benches/runs/<date>-<name>/."""

from __future__ import annotations

import argparse
import json
import shlex
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tricorn.bench.report.layout import markdown as table

from benches.harness import environment
from benches.harness.process import ROOT

__all__ = ["conclude", "shown", "table", "write"]


def conclude(arguments: argparse.Namespace, title: str, commands: dict[str, str], body: str, data: Any) -> Path | None:
    """Shows the page of a run and keeps it under `--name`, but for a `--dry` one. Where it is kept."""
    print(f"\n{body}")
    if arguments.dry:
        return None
    folder = write(arguments.name, title, environment.describe(), commands, body, data)
    print(f"\nwritten to {folder.relative_to(ROOT)}")
    return folder


def write(name: str, title: str, environment: dict[str, str], commands: dict[str, str], body: str, data: Any) -> Path:
    folder = ROOT / "benches" / "runs" / f"{time.strftime('%Y-%m-%d')}-{name}"
    folder.mkdir(parents=True, exist_ok=True)
    raw = {"environment": environment, "commands": commands, "data": data}
    (folder / "raw.json").write_text(json.dumps(raw, indent=1) + "\n")
    page = [f"# {title}", "", body, "", "## Environment", ""]
    page += [f"* {key}: {value}" for key, value in environment.items()]
    page += ["", "## Commands", "", *[f"* {key}: `{value}`" for key, value in commands.items()], ""]
    (folder / "README.md").write_text("\n".join(page))
    return folder


def shown(command: Sequence[str], port: int) -> str:
    """A command as it can be repeated elsewhere: no paths of this machine, no random port."""
    words = []
    for word in command:
        word = word.replace(f"{ROOT}/", "").replace(str(port), "PORT")
        words.append("python" if word.endswith("bin/python") else word)
    return shlex.join(words).replace("'", '"')
