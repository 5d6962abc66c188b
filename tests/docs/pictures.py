"""Takes screenshots of the pages that tricorn shows in a browser, for docs/images: part of `make docs-pictures`.

    python -m tests.docs.pictures [admin] [flame] [bench]

Each picture is one SVG with two screenshots, for light and dark pages: the colour scheme of the reader selects one. The
admin page and the flame graph show a server under load, the report of `tricorn bench` a run of benches/runs.
"""

from __future__ import annotations

import base64
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from benches.archive import RUNS, unpacked
from tests.harness import Site
from tests.harness.chromium import Chromium, Page
from tests.harness.server import free_port

IMAGES = Path(__file__).resolve().parents[2] / "docs/images"
FOLDER = "/srv/shop"
"""Shown in place of the temporary directory of the application."""
RUN = "2026-11-28-cases", "fastapi-async"

WIDTH = 1060
SCALE = 1.5
HISTORY = 240.0
"""Seconds of load before the admin page is shown, so that its charts have a history."""
QUALITY = 85

SETTLED = 0.5
"""Seconds until a page is painted in another size or colour scheme."""
DRAWN = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))"

SHOP = """\
import sqlite3
import time


def application(environ, start_response):
    view = {"/checkout": checkout, "/report": report}.get(environ["PATH_INFO"], orders)
    body = view()
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]


def checkout():
    cart = load_cart()
    total = price(cart)
    charge(total)
    return render(cart)


def orders():
    return render(query(0.012))


def report():
    return render([price(query(0.015)) for _ in range(4)])


def load_cart():
    return query(0.008) + query(0.005)


def query(seconds):
    with sqlite3.connect(":memory:") as database:
        database.create_function("wait", 1, time.sleep)
        database.execute("select wait(?)", (seconds,))
    return list(range(2000))


def price(rows):
    return sum(discount(row) * 1.19 for row in rows)


def discount(row):
    return sum(row - step for step in range(9))


def charge(total):
    request_payment(total)


def request_payment(total):
    time.sleep(0.02)


def render(rows):
    return "".join(f"<tr><td>{row}</td></tr>" for row in rows * 8).encode()
"""


def main(words: list[str]) -> int:
    with Chromium() as browser:
        for name in words or list(PICTURES):
            PICTURES[name](browser)
    return 0


def admin(browser: Chromium) -> None:
    port = free_port()
    config = f"admin_bind = '127.0.0.1:{port}'\nworkers = 2\nworker_class = 'gthread'\nthreads = 4\n"
    with Site(config, app="shop:application", workers=2, files={"shop.py": SHOP}) as server, load(server):
        page = browser.open(f"http://127.0.0.1:{port}/")
        page.see("2 of 2 workers ready")
        time.sleep(HISTORY)
        write("admin.svg", browser, page, "The admin page")


def flame(browser: Chromium) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        Site(
            f"worker_class = 'gthread'\nthreads = 4\ncontrol_socket = '{folder}/ctl'\n",
            app="shop:application",
            files={"shop.py": SHOP},
        ) as server,
        load(server),
    ):
        path = Path(folder) / "profile.html"
        tricorn(
            "doctor",
            "profile",
            "-s",
            f"{folder}/ctl",
            "--route",
            "GET /checkout",
            "--seconds",
            "12",
            "--format",
            "html",
            "-o",
            str(path),
        )
        text = path.read_text().replace(os.path.realpath(server.directory), FOLDER).replace(sys.base_prefix, "/usr")
        path.write_text(text)
        page = browser.open(path.as_uri())
        write("flame.svg", browser, page, "A profile as a flame graph")


def bench(browser: Chromium) -> None:
    run, case = RUN
    with unpacked(RUNS / run) as files, tempfile.TemporaryDirectory() as folder:
        tricorn("bench", "--report", str(files / case / "result.json"), "-o", folder)
        page = browser.open((Path(folder) / "report.html").as_uri())
        write("bench-report.svg", browser, page, "A report of tricorn bench", height=775)


PICTURES: dict[str, Callable[[Chromium], None]] = {"admin": admin, "flame": flame, "bench": bench}


def tricorn(*words: str) -> None:
    subprocess.run([f"{Path(sys.executable).parent}/tricorn", *words], check=True, stdout=subprocess.DEVNULL)


@contextmanager
def load(server: Site) -> Iterator[None]:
    """Sends requests from a few clients, which pause between them."""
    over = threading.Event()

    def ask(seed: int) -> None:
        draw = random.Random(seed)
        while not over.wait(draw.expovariate(8)):
            server.get(draw.choices(("/orders", "/checkout", "/report"), (6, 3, 1))[0])

    with ThreadPoolExecutor(5) as pool:
        clients = [pool.submit(ask, seed) for seed in range(5)]
        try:
            yield
        finally:
            over.set()
            for client in clients:
                client.result()


def write(name: str, browser: Chromium, page: Page, title: str, *, height: int | None = None) -> None:
    """Takes a screenshot in each colour scheme: of the whole page, or of its upper part."""
    sizes = {"width": WIDTH, "height": 800, "deviceScaleFactor": SCALE, "mobile": False}
    browser.call("Emulation.setDeviceMetricsOverride", page.session, **sizes)
    browser.call("Emulation.setScrollbarsHidden", page.session, hidden=True)
    page.run(DRAWN)
    shown = height or page.run("Math.ceil(document.body.getBoundingClientRect().bottom)")
    browser.call("Emulation.setDeviceMetricsOverride", page.session, **{**sizes, "height": shown})
    shots = {}
    for scheme in ("light", "dark"):
        media = [{"name": "prefers-color-scheme", "value": scheme}]
        browser.call("Emulation.setEmulatedMedia", page.session, features=media)
        page.run(DRAWN)
        time.sleep(SETTLED)
        clip = {"x": 0, "y": 0, "width": WIDTH, "height": shown, "scale": 1}
        options = {"format": "webp", "quality": QUALITY, "clip": clip}
        shots[scheme] = browser.call("Page.captureScreenshot", page.session, **options)["data"]
        assert base64.b64decode(shots[scheme])[8:12] == b"WEBP"
    page.close()
    (IMAGES / name).write_text(svg(shots["light"], shots["dark"], WIDTH, shown, title))


def svg(light: str, dark: str, width: int, height: int, title: str) -> str:
    size = f'width="{width}" height="{height}"'

    def image(kind: str, data: str) -> str:
        return f'<image class="{kind}" {size} href="data:image/webp;base64,{data}"/>'

    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" {size}>',
            f"<title>{title}</title>",
            "<style>.dark { display: none }",
            "@media (prefers-color-scheme: dark) { .dark { display: inline } .light { display: none } }</style>",
            image("light", light),
            image("dark", dark),
            f'<rect {size} fill="none" stroke="#8c959f"/>',
            "</svg>",
            "",
        ]
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
