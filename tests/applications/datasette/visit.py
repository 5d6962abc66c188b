"""Pages with their files, JSON, a database download, a streamed CSV, and clients that disconnect during the stream."""

from __future__ import annotations

from browser import Browser, visit

CSV = "/shop/orders.csv?_stream=on&_size=max"


def steps(browser: Browser) -> dict[str, object]:
    seen: dict[str, object] = {
        path: browser.load(path, ignoring=r'name="csrftoken" value="[^"]*"|\d+(\.\d+)?ms') for path in ("/", "/shop")
    }
    rows = browser.get("/shop/orders.json?customer=customer+7&_shape=array&_size=3").json()
    seen["rows"] = [row["id"] for row in rows]
    seen["sql"] = browser.get("/shop.json?sql=select+count(*)+as+n+from+orders&_shape=array").json()
    seen["missing"] = browser.get("/shop/nothing", 404).status_code
    seen["database"] = browser.get("/shop.db").content[:15].decode()
    seen["not changed"] = browser.get("/-/static/app.css").headers.get("etag")
    seen["csv"] = len(browser.get(CSV).text.splitlines())
    for _ in range(5):
        browser.leave(CSV, b"customer 1")
    seen["after"] = browser.get("/-/versions.json").status_code
    return seen


visit(steps)
