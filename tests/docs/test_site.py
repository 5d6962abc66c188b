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

from tests.docs.test_tasks import FAQ, TASKS
from tests.harness.chromium import Chromium, Page
from tests.harness.deadline import until
from tests.harness.site_pages import site

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


SEARCH = """
(async () => {
  const pagefind = await import("./pagefind/pagefind.js");
  const pages = {};
  for (const query of %s) {
    const { results } = await pagefind.search(query);
    const found = await Promise.all(results.slice(0, %d).map(each => each.data()));
    pages[query] = found.map(each => each.url.replace(/^\\/|\\.html$/g, ""));
  }
  return JSON.stringify(pages);
})()
"""
ALL = 1000


@pytest.fixture(scope="module")
def search_page(browser: Chromium, address: str) -> Page:
    return browser.open(f"{address}/search.html")


def found(page: Page, queries: list[str], most: int) -> dict[str, list[str]]:
    """The pages that a search shows first, by the words that are searched for."""
    answer: dict[str, list[str]] = json.loads(page.run(SEARCH % (json.dumps(queries), most)))
    return answer


SEARCHES = [
    ("502", "deploying/nginx"),
    ("502 bad gateway", "get-started/faq"),
    ("503", "diagnose/why-503"),
    ("504", "get-started/faq"),
    ("413", "get-started/faq"),
    ("431", "diagnose/why-431"),
    ("worker timeout", "get-started/faq"),
    ("upload too large", "get-started/faq"),
    ("out of memory", "diagnose/worker-died"),
    ("oom", "get-started/faq"),
    ("memory", "guides/limit-memory"),
    ("max requests", "get-started/faq"),
    ("port already in use", "get-started/faq"),
    ("behind nginx", "guides/behind-nginx"),
    ("nginx", "deploying/nginx"),
    ("haproxy", "deploying/haproxy"),
    ("docker", "deploying/docker"),
    ("kubernetes", "deploying/kubernetes"),
    ("systemd", "deploying/systemd"),
    ("heroku", "deploying/cloud"),
    ("cloud run", "deploying/cloud"),
    ("reload", "guides/reload"),
    ("hot reload", "get-started/faq"),
    ("zero downtime", "get-started/faq"),
    ("graceful shutdown", "get-started/faq"),
    ("drain", "guides/drain"),
    ("websocket", "how-it-works/event-loops"),
    ("https", "guides/tls"),
    ("client ip", "get-started/faq"),
    ("x-forwarded-for", "guides/trusted-proxies"),
    ("csrf", "get-started/faq"),
    ("static files", "guides/static-files"),
    ("x-sendfile", "guides/static-files"),
    ("gzip", "guides/compression"),
    ("apache", "deploying/apache"),
    ("uwsgi", "guides/uwsgi"),
    ("preload", "guides/share-memory"),
    ("logging json", "reference/log-formats"),
    ("logging json", "get-started/faq"),
    ("log rotation", "guides/rotate-logs"),
    ("prometheus", "guides/metrics"),
    ("health check", "guides/health"),
    ("slow", "diagnose/slow-requests"),
    ("blocked event loop", "diagnose/find-what-blocks"),
    ("how many workers", "guides/choose-a-class"),
    ("timeout", "guides/timeouts"),
    ("keepalive", "deploying/cloud"),
    ("root_path", "migrate/from-uvicorn"),
    ("http2", "guides/http2"),
    ("macos", "reference/distributions"),
    ("fastapi", "frameworks/fastapi"),
    ("fastapi dev", "migrate/from-uvicorn"),
    ("flask", "frameworks/flask"),
    ("django", "frameworks/django"),
    ("gunicorn", "migrate/from-gunicorn"),
    ("uvicorn", "migrate/from-uvicorn"),
    ("uwsgi", "migrate/from-others"),
    ("benchmark", "reference/bench"),
    ("load test", "reference/load"),
    ("testing", "guides/testing"),
]
"""Words that people type, and a page that must be among the first three."""


def test_the_first_three_answer_what_people_type(search_page: Page) -> None:
    pages = found(search_page, [words for words, _ in SEARCHES], 3)
    assert [f"{words}: {pages[words]}" for words, target in SEARCHES if target not in pages[words]] == []


def test_the_words_of_each_task_find_its_page(search_page: Page) -> None:
    pages = found(search_page, [*TASKS], 3)
    assert [words for words in TASKS if FAQ not in pages[words]] == []


def test_the_search_finds_every_setting(search_page: Page) -> None:
    names = [setting.name for setting in SETTINGS]
    pages = found(search_page, names, ALL)
    assert [name for name in names if "reference/settings" not in pages[name]] == []


def test_the_search_finds_every_line_of_the_log(search_page: Page) -> None:
    lines = {line: words for line in read(NOTES.read_text()).texts if (words := line.replace("…", " ").strip(" .,:()"))}
    pages = found(search_page, [*lines.values()], ALL)
    missing = [line for line, words in lines.items() if "reference/log-lines" not in pages[words]]
    assert len(lines) > 100
    assert not missing, missing


def test_the_search_knows_no_pages_for_contributors(search_page: Page) -> None:
    assert found(search_page, ["changelog contributing"], ALL)["changelog contributing"] == []
    assert not (site() / "internals").exists()


def test_the_search_page_shows_what_it_has_found(browser: Chromium, address: str) -> None:
    page = browser.open(f"{address}/search.html?q=503", watched=True)
    page.see("pages for “503”")
    first = page.run("document.querySelector('#search-results a').href")
    assert first == f"{address}/diagnose/why-503.html"
    assert page.run("document.querySelector('.search-form input').value") == "503"
    assert "¶" not in page.text()
    assert page.errors() == []
    page.close()
    page = browser.open(f"{address}/search.html?q=%3Cb%3Ezzzz")
    page.see("Nothing found for “<b>zzzz”")
    page.close()
