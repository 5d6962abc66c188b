"""The files of the deployment pages: their programs take them, and tricorn takes the settings beside them."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tricorn.config.load import Sources

from tests.harness import Server
from tests.harness.deadline import PATIENCE, until
from tests.harness.pages import BLOCK, DOCS
from tests.harness.server import free_port
from tests.harness.wire import Wire

PAGES = sorted((DOCS / "deploying").glob("*.md"))


def blocks(page: str) -> list[str]:
    return [block[3] for block in BLOCK.finditer((DOCS / "deploying" / page).read_text())]


def file_of(page: str, name: str) -> str:
    """The block of a page whose first line says that it is this file."""
    return next(text for text in blocks(page) if text.startswith(f"# {name}\n"))


def takes(command: list[str]) -> None:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stdout}"


def needs(program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")


def test_tricorn_takes_the_settings_of_each_page(tmp_path: Path) -> None:
    found = 0
    for page in PAGES:
        for number, text in enumerate(blocks(page.name)):
            if not re.match(r"(# tricorn.conf.py\n)?\w+ = ", text):
                continue
            found += 1
            path = tmp_path / f"{page.stem}_{number}.py"
            path.write_text(text)
            sources = Sources(("--config", str(path), "main:app"), {}, str(tmp_path))
            assert sources.load().config.bind, page.name
    assert found >= 4


def test_tricorn_takes_the_variables_of_the_manifest(tmp_path: Path) -> None:
    manifest = file_of("kubernetes.md", "shop.yaml")
    names = re.findall(r'name: (TRICORN_\w+), value: "(.*?)"', manifest)
    assert len(names) >= 5
    config = Sources(("main:app",), dict(names), str(tmp_path)).load().config
    assert config.drain_delay == int(dict(names)["TRICORN_DRAIN_DELAY"])


def test_the_grace_of_the_manifest_is_longer_than_a_drain() -> None:
    manifest = file_of("kubernetes.md", "shop.yaml")
    (grace,) = re.findall(r"terminationGracePeriodSeconds: (\d+)", manifest)
    values = dict(re.findall(r'name: (TRICORN_\w+), value: "(\d+)"', manifest))
    assert int(grace) >= int(values["TRICORN_DRAIN_DELAY"]) + int(values["TRICORN_GRACEFUL_TIMEOUT"]) + 5


def test_haproxy_takes_its_file(tmp_path: Path) -> None:
    needs("haproxy")
    needs("openssl")
    pair = tmp_path / "shop.pem"
    key = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=shop.example", "-days", "2"]
    takes([*key, "-keyout", str(tmp_path / "key"), "-out", str(tmp_path / "certificate")])
    pair.write_text((tmp_path / "key").read_text() + (tmp_path / "certificate").read_text())
    path = tmp_path / "haproxy.cfg"
    path.write_text(file_of("haproxy.md", "haproxy.cfg").replace("/etc/ssl/shop.pem", str(pair)))
    takes(["haproxy", "-c", "-f", str(path)])


def test_caddy_takes_its_file(tmp_path: Path) -> None:
    needs("caddy")
    path = tmp_path / "Caddyfile"
    path.write_text(file_of("caddy.md", "Caddyfile"))
    takes(["caddy", "validate", "--adapter", "caddyfile", "--config", str(path)])


@pytest.mark.beyond_reference("the setting is tricorn's own")
def test_caddy_puts_the_address_of_the_client_in_place_of_what_that_says(tmp_path: Path) -> None:
    needs("caddy")
    public, admin = free_port(), free_port()
    options = {"trusted_proxy_headers": "x-forwarded-for,x-forwarded-proto,x-forwarded-host"}
    log_format = "client=%(h)s said=%({X-Forwarded-For}i)s"
    options |= {"access_logfile": "-", "access_logformat": log_format, "admin_bind": f"127.0.0.1:{admin}"}
    with Server(keep_alive=75, **options) as server:
        text = file_of("caddy.md", "Caddyfile").replace("shop.example {", f"http://:{public} {{")
        text = text.replace("127.0.0.1:8000", f"127.0.0.1:{server.port}").replace("8001", str(admin))
        path = tmp_path / "Caddyfile"
        path.write_text("{\n    admin off\n    auto_https off\n}\n" + text)
        log = (tmp_path / "log").open("wb")
        command = ["caddy", "run", "--adapter", "caddyfile", "--config", str(path)]
        caddy = subprocess.Popen(command, stdout=log, stderr=log, cwd=tmp_path, env={"HOME": str(tmp_path)})
        try:

            def answered() -> bool:
                try:
                    with Wire(("127.0.0.1", public)) as wire:
                        return wire.get("/", ("X-Forwarded-For", "203.0.113.9")).status == 200
                except OSError:
                    return False

            until(answered, "Caddy answers with what the server says")
            server.out.wait("client=127.0.0.1 said=127.0.0.1$")
        finally:
            caddy.kill()
            caddy.wait()
            log.close()
