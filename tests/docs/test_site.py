"""The site that `make docs` has built: it asks no other host, and its search finds what an operator looks for."""

from __future__ import annotations

import functools
import http.server
import json
import re
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tricorn.config.registry import SETTINGS

from tests.harness.chromium import Chromium
from tests.harness.deadline import until
from tests.harness.site_pages import pages_with, site, stems

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from scripts.render_log_lines import NOTES, read

PAGES_WALKED = (
    "index",
    "get-started/quickstart",
    "diagnose/why-431",
    "reference/log-lines",
    "reference/settings",
    "how-it-works/one-queue",
)
NARROW, WIDE = (390, 844), (1280, 900)


def test_no_page_asks_another_host() -> None:
    wrong = []
    for page in site().rglob("*.html"):
        text = re.sub(r"<pre>.*?</pre>|<code.*?</code>", "", page.read_text(), flags=re.DOTALL)
        for tag, address in re.findall(r'<(link|script|img|iframe|source)\b[^>]*?(?:src|href)="([^"]*)"', text):
            if re.match(r"(https?:)?//", address):
                wrong.append(f"{page.relative_to(site())}: <{tag}> {address}")
    assert not wrong, "\n".join(wrong)


def test_the_search_finds_every_setting() -> None:
    names = [setting.name for setting in SETTINGS]
    found = stems(names)
    missing = [name for name in names if "reference/settings" not in pages_with(found[name])]
    assert not missing, missing


def test_the_search_finds_every_line_of_the_log() -> None:
    found = {line: stemmed for line, stemmed in stems(read(NOTES.read_text()).texts).items() if stemmed}
    missing = [line for line, stemmed in found.items() if "reference/log-lines" not in pages_with(stemmed)]
    assert len(found) > 100
    assert not missing, missing


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    handler = functools.partial(Quiet, directory=str(site()))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def browser(address: str) -> Iterator[Chromium]:
    with Chromium() as chromium:
        yield chromium


WATCH = """
(() => {
  const wrong = [];
  for (const entry of performance.getEntriesByType('resource'))
    if (!entry.name.startsWith(location.origin) && !entry.name.startsWith('data:')) wrong.push(entry.name);
  for (const image of document.images)
    if (!(image.complete && image.naturalWidth)) wrong.push('not loaded: ' + image.src);
  return JSON.stringify(wrong);
})()
"""
CONTRAST = """
(() => {
  const light = colour => colour.match(/[\\d.]+/g).slice(0, 3).reduce((sum, part) => sum + Number(part), 0) / 765;
  const style = getComputedStyle(document.body);
  return [light(style.backgroundColor), light(style.color)].join(' ');
})()
"""
WIDER = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pages_can_be_read(browser: Chromium, address: str, theme: str) -> None:
    for name in PAGES_WALKED:
        page = browser.open(f"{address}/{name}.html", watched=True)
        features = [{"name": "prefers-color-scheme", "value": theme}]
        browser.call("Emulation.setEmulatedMedia", page.session, features=features)
        for width, height in (WIDE, NARROW):
            screen = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
            browser.call("Emulation.setDeviceMetricsOverride", page.session, **screen)
            assert page.run(WIDER) <= 0, f"{name} is wider than {width} pixels"
        until(
            lambda page=page: json.loads(page.run(WATCH)) == [], f"{name} loads what it needs, and nothing from outside"
        )
        paper, ink = map(float, page.run(CONTRAST).split())
        assert (paper > ink + 0.5) if theme == "light" else (ink > paper + 0.5), f"{name} in {theme}: {paper} {ink}"
        assert page.errors() == [], name
        page.close()


@pytest.mark.parametrize(
    ("words", "target"),
    [
        ("max_worker_memory", "reference/settings"),
        ("Perhaps out of memory", "reference/log-lines"),
        ("Overload every worker is busy", "reference/log-lines"),
        ("graceful_timeout", "reference/settings"),
    ],
)
def test_the_search_box_finds(browser: Chromium, address: str, words: str, target: str) -> None:
    query = words.replace(" ", "+")
    page = browser.open(f"{address}/search.html?q={query}")
    found = f"[...document.querySelectorAll('#search-results a')].some(a => a.href.includes('{target}.html'))"
    until(lambda: page.run(found), f"a search for {words!r} finds {target}")
    page.close()
