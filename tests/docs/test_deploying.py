"""The files of the deployment pages: their programs take them, and tricorn takes the settings beside them."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tricorn.config.load import Sources
from tricorn_tools.init.command import KINDS

from scripts.render_deploying import PAGES as PAGES_OF_INIT
from scripts.render_deploying import render
from tests.harness import Server
from tests.harness.apache import apache_around
from tests.harness.apache import needs as named
from tests.harness.deadline import PATIENCE, until
from tests.harness.pages import BLOCK, DOCS
from tests.harness.server import free_port
from tests.harness.wire import Wire

PAGES = sorted((DOCS / "deploying").glob("*.md"))


def blocks(page: str) -> list[str]:
    return [block[3] for block in BLOCK.finditer((DOCS / "deploying" / page).read_text())]


def file_of(page: str, name: str) -> str:
    """The block of a page whose first line begins with the name of this file."""
    return next(text for text in blocks(page) if text.startswith((f"# {name}\n", f"# {name}:")))


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


@pytest.mark.parametrize("page", PAGES_OF_INIT)
def test_the_files_of_a_page_are_what_init_prints(page: str) -> None:
    text = (DOCS.parent / page).read_text()
    _, _, rest = text.partition("<!-- Rendered by scripts/render_deploying.py from what `tricorn init` prints: ")
    assert rest.partition("-->\n\n")[2].startswith(f"{render(page)}\n<!-- Until here. -->\n")


def test_each_kind_of_file_has_a_page() -> None:
    assert {Path(page).stem for page in PAGES_OF_INIT} == set(KINDS)


def test_nginx_takes_its_file_with_tls_and_static_files(tmp_path: Path) -> None:
    needs("nginx")
    certificate(tmp_path)
    listen = "    listen 80;\n    listen [::]:80;\n"
    printed, tls = (
        file_of("nginx.md", "shop.conf"),
        next(text for text in blocks("nginx.md") if text.startswith("    listen 443 ssl;")),
    )
    assert printed.count(listen) == 1
    site = printed.replace(listen, tls.replace("/etc/ssl", str(tmp_path)))
    (tmp_path / "shop.conf").write_text(site)
    around = f"daemon off; pid {tmp_path}/pid; error_log stderr; events {{}} http {{ include {tmp_path}/shop.conf; }}"
    (tmp_path / "nginx.conf").write_text(around)
    takes(["nginx", "-t", "-p", str(tmp_path), "-c", str(tmp_path / "nginx.conf")])


def test_apache_takes_its_file_with_tls_and_static_files(tmp_path: Path) -> None:
    certificate(tmp_path)
    printed = file_of("apache.md", "shop.conf")
    tls = next(text for text in blocks("apache.md") if text.startswith("<VirtualHost *:443>"))
    assert printed.count("<VirtualHost *:80>\n") == 1
    site = printed.replace("<VirtualHost *:80>\n", tls.replace("/etc/ssl", str(tmp_path)))
    takes(apache_around(site, tmp_path, *named(site), "ssl", check=True))


def test_haproxy_takes_its_file_with_tls(tmp_path: Path) -> None:
    needs("haproxy")
    certificate(tmp_path)
    (words,) = re.findall(
        r"`(bind :443 ssl [^`]+)` in place of `bind :80`", (DOCS / "deploying/haproxy.md").read_text()
    )
    path = tmp_path / "haproxy.cfg"
    printed = file_of("haproxy.md", "haproxy.cfg")
    assert "\n    bind :80\n" in printed
    path.write_text(printed.replace("bind :80\n", words.replace("/etc/ssl", str(tmp_path)) + "\n"))
    takes(["haproxy", "-c", "-f", str(path)])


def certificate(folder: Path) -> None:
    """shop.pem with both parts, as HAProxy reads it, and shop.key."""
    needs("openssl")
    key, pair = folder / "shop.key", folder / "shop.pem"
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=shop.example", "-days", "2"]
    takes([*make, "-keyout", str(key), "-out", str(pair)])
    pair.write_text(key.read_text() + pair.read_text())


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
