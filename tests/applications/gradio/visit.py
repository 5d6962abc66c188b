"""A page with its files, the client's calls and streams, an upload, a download, and a client that disconnects."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from browser import Browser, events, visit
from gradio_client import Client, handle_file

CONTENT = bytes(range(256)) * 4096
OF_THIS_RUN = r'"(app_id|secret|delete_callback)":[^,]*,'


def steps(browser: Browser) -> dict[str, object]:
    main = browser.get("/")
    is_mounted = main.headers["content-type"] == "application/json"
    path = "/gradio/" if is_mounted else "/"
    seen: dict[str, object] = {"main": main.json() if is_mounted else main.status_code}
    seen["assets"] = browser.load(path, ignoring=OF_THIS_RUN)
    client = Client(f"{browser.base}{path}", verbose=False)
    seen["call"] = client.predict("hello", api_name="/shout")
    job = client.submit(5, api_name="/count")
    seen["stream"] = [job.result(), job.outputs()]
    talk = client.submit("hello", api_name="/chat")
    seen["chat"] = [talk.result(), talk.outputs()]
    with tempfile.TemporaryDirectory() as directory:
        upload = Path(directory) / "upload.bin"
        upload.write_bytes(CONTENT)
        turned = Path(client.predict(handle_file(upload), api_name="/turn_around"))
        seen["file"] = turned.read_bytes() == CONTENT[::-1]
    seen["left"] = leave(browser, path)
    client.close()
    return seen


def leave(browser: Browser, path: str) -> object:
    """The page is closed while a function streams to it; its heartbeat ends at the same time."""
    identity = {"session_hash": "closed-tab"}
    index = next(
        number
        for number, each in enumerate(browser.get(f"{path}config").json()["dependencies"])
        if each["api_name"] == "count"
    )
    with browser.stream(f"{path}gradio_api/heartbeat/closed-tab") as heartbeat:
        assert b"200 OK" in next(heartbeat)
        browser.post(f"{path}gradio_api/queue/join", json=identity | {"data": [100000], "fn_index": index})
        with browser.stream(f"{path}gradio_api/queue/data?session_hash=closed-tab") as pieces:
            kinds = []
            for event in events(pieces):
                kinds.append(event["msg"])
                if kinds.count("process_generating") == 3:
                    break
    return [json.dumps(sorted(set(kinds))), browser.get(f"{path}config").status_code]


visit(steps)
