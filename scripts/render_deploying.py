"""Renders the whole files on the pages of docs/deploying: what `tricorn init` prints for the configuration of each.

python scripts/render_deploying.py           writes them, and the recipes of deploy/
python scripts/render_deploying.py --check   fails if a page or a recipe is not what `tricorn init` prints

A page has the configuration in a block that begins with `# tricorn.conf.py`, and the command in a block of `sh`. What
differs from machine to machine is as it would be on a server: the directory, the environment, the version of Python.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from scripts import rendered

PAGES = tuple(
    f"docs/deploying/{name}.md"
    for name in ("systemd", "docker", "compose", "kubernetes", "nginx", "apache", "haproxy", "envoy")
)
APPLICATION = "shop.wsgi:application"
HOSTS = "10.0.0.11,10.0.0.12,10.0.0.13"
RECIPES = {
    "deploy/haproxy/haproxy.cfg": f"init haproxy --hosts {HOSTS} {APPLICATION}",
    "deploy/nginx/shop.conf": f"init nginx --hosts {HOSTS} --domain shop.example {APPLICATION}",
    "deploy/envoy/envoy.yaml": f"init envoy --hosts {HOSTS} {APPLICATION}",
    "deploy/systemd/shop.service": f"init systemd --systemd-version 253 {APPLICATION}",
}
"""Files of deploy/, and the command that prints each in the directory of an application with deploy/tricorn.conf.py."""
CONFIGURATION = re.compile(r"^```python\n(# tricorn\.conf\.py\n.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^tricorn (init .+)$", re.MULTILINE)
HERE = "/srv/shop"
"""The directory of the application on the pages."""


def render(page: str) -> str:
    text = (rendered.ROOT / page).read_text()
    with tempfile.TemporaryDirectory(prefix="shop-") as name:
        directory = Path(name).resolve()
        (directory / "tricorn.conf.py").write_text(CONFIGURATION.findall(text)[0])
        (directory / "requirements.txt").touch()
        printed = _printed(COMMAND.findall(text)[0].split(), directory)
    return "\n\n".join(f"```text\n{file.strip()}\n```" for file in _files(_elsewhere(printed, directory))) + "\n"


def recipe(command: str) -> str:
    """The file that a command of RECIPES prints."""
    with tempfile.TemporaryDirectory(prefix="shop-") as name:
        directory = Path(name).resolve()
        (directory / "tricorn.conf.py").write_text((rendered.ROOT / "deploy/tricorn.conf.py").read_text())
        return _elsewhere(_printed(command.split(), directory), directory)


def _printed(words: list[str], directory: Path) -> str:
    strangers = ("TRICORN_", "GUNICORN_", "UVICORN_", "GRANIAN_", "WEB_CONCURRENCY", "PORT", "FORWARDED_ALLOW_IPS")
    environ = {name: value for name, value in os.environ.items() if not name.startswith(strangers)}
    command = [sys.executable, "-m", "tricorn", *words]
    return subprocess.run(command, cwd=directory, env=environ, stdout=subprocess.PIPE, text=True, check=True).stdout


def _elsewhere(text: str, directory: Path) -> str:
    text = text.replace(str(Path(os.path.abspath(sys.executable)).parent), f"{HERE}/.venv/bin")
    return re.sub(r"\bpython:3\.\d+-slim\b", f"python:{newest_python()}-slim", text.replace(str(directory), HERE))


def newest_python() -> str:
    """That of the classifiers."""
    project = (rendered.ROOT / "pyproject.toml").read_text()
    versions: list[str] = re.findall(r"Programming Language :: Python :: (3\.\d+)", project)
    return versions[-1]


def _files(text: str) -> list[str]:
    """Several begin with `# ---- NAME` each."""
    return [file for file in re.split(r"^(?=# ---- )", text, flags=re.MULTILINE) if file.strip()]


if __name__ == "__main__":
    made = [
        rendered.main(page, "scripts/render_deploying.py", "what `tricorn init` prints", render(page)) for page in PAGES
    ]
    recipes = {path: recipe(command) for path, command in RECIPES.items()}
    sys.exit(max(*made, rendered.whole("scripts/render_deploying.py", recipes)))
