"""The recipes for several hosts: what `tricorn init` prints, and what their programs accept."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tricorn.config.load import Sources

from scripts.render_deploying import RECIPES, recipe
from tests.cluster.balancers import DEPLOY, program
from tests.harness.balancers import nginx_around
from tests.harness.deadline import PATIENCE

ROOT = DEPLOY.parent


def takes(command: list[str]) -> None:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stdout}"


@pytest.mark.parametrize("path", RECIPES)
def test_a_recipe_is_what_init_prints(path: str) -> None:
    assert (ROOT / path).read_text() == recipe(RECIPES[path])


def test_each_file_that_is_no_chart_is_a_recipe() -> None:
    found = {str(path.relative_to(ROOT)) for path in DEPLOY.rglob("*") if path.is_file() and "helm" not in path.parts}
    assert found == {*RECIPES, "deploy/README.md", "deploy/tricorn.conf.py"}


def test_tricorn_takes_the_configuration_of_a_host(tmp_path: Path) -> None:
    sources = Sources(("--config", str(DEPLOY / "tricorn.conf.py"), "main:app"), {}, str(tmp_path))
    config = sources.load().config
    assert config.sizing is not None
    assert config.drain_delay >= 3, "two checks that fail, and one second more"


def test_haproxy_accepts_its_recipe() -> None:
    takes([program("haproxy"), "-c", "-f", str(DEPLOY / "haproxy/haproxy.cfg")])


def test_nginx_accepts_its_recipe(tmp_path: Path) -> None:
    (tmp_path / "site.conf").write_text((DEPLOY / "nginx/shop.conf").read_text())
    (tmp_path / "nginx.conf").write_text(nginx_around(f"    include {tmp_path}/site.conf;", tmp_path))
    takes([program("nginx"), "-t", "-p", str(tmp_path), "-c", str(tmp_path / "nginx.conf"), "-e", "stderr"])


def test_envoy_accepts_its_recipe() -> None:
    takes([program("envoy"), "--mode", "validate", "-c", str(DEPLOY / "envoy/envoy.yaml")])


def test_systemd_accepts_its_recipe(tmp_path: Path) -> None:
    """Its program is that of an application's environment; the checker wants one that is there."""
    text = (DEPLOY / "systemd/shop.service").read_text()
    assert "/srv/shop" in text
    unit = tmp_path / "shop.service"
    unit.write_text(
        text.replace("/srv/shop/.venv/bin/python", "/bin/true").replace("/srv/shop/.venv/bin/tricorn", "/bin/true")
    )
    takes([program("systemd-analyze"), "verify", "--man=no", str(unit)])
