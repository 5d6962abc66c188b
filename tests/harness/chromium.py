"""A real browser, without a window, driven by its DevTools protocol.

https://chromedevtools.github.io/devtools-protocol/: messages of JSON over a WebSocket.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.harness.deadline import until
from tests.harness.server import Lines

if TYPE_CHECKING:
    from typing_extensions import Self

NAMES = ("chromium", "chromium-browser", "google-chrome")
#: Seconds: the first start of a browser on a busy machine takes its time.
PATIENCE = 60.0


def binary() -> str:
    """Chromium's command, or the test is skipped."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("needs a browser: apt-get install chromium")
    return found


KEEP_ERRORS = """
window.tricornErrors = [];
window.addEventListener('error', event => tricornErrors.push(String(event.message || event.target.src)), true);
window.addEventListener('unhandledrejection', event => tricornErrors.push(String(event.reason)));
const error = console.error;
console.error = (...words) => { tricornErrors.push(words.join(' ')); error(...words); };
"""


class Chromium:
    """A context manager: inside it the browser runs, with a profile of its own; afterwards nothing of it is left."""

    def __init__(self, *flags: str) -> None:
        self._flags = flags

    def __enter__(self) -> Self:
        client = pytest.importorskip("websockets.sync.client")
        self._connection = ExitStack()
        self.directory = Path(tempfile.mkdtemp(prefix="tricorn-chromium-"))
        command = [binary(), "--headless=new", "--remote-debugging-port=0", f"--user-data-dir={self.directory}"]
        command += ["--no-first-run", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking"]
        # Its sandbox refuses to run as root, and where it is not set up. Only pages of our own are opened.
        command += ["--no-sandbox"]
        self.process = subprocess.Popen(
            [*command, *self._flags, "about:blank"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            assert self.process.stderr is not None
            self.log = Lines(self.process.stderr)
            (address,) = self.log.wait(r"DevTools listening on (ws://\S+)", within=PATIENCE)
            self._socket = self._connection.enter_context(client.connect(address[1], max_size=None, proxy=None))
        except BaseException:
            self.stop()
            raise
        self._numbers = itertools.count(1)
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()
        self.stop()

    def stop(self) -> None:
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait(60)
        # Its children may still be writing for a moment.
        until(lambda: not self._remains(), "the browser's profile is removed")

    def _remains(self) -> bool:
        shutil.rmtree(self.directory, ignore_errors=True)
        return self.directory.exists()

    def call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """One command; events that come meanwhile are passed over."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        self._socket.send(json.dumps({**message, "sessionId": session} if session else message))
        while (answer := json.loads(self._socket.recv(timeout=PATIENCE))).get("id") != number:
            pass
        assert "error" not in answer, f"{method}: {answer['error']}"
        result: dict[str, Any] = answer["result"]
        return result

    def open(self, url: str, *, watched: bool = False) -> Page:
        """A new tab, when its page has been loaded; `watched`: its errors are kept."""
        target = self.call("Target.createTarget", url="about:blank" if watched else url)["targetId"]
        page = Page(self, target, self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"])
        if watched:
            self.call("Page.enable", page.session)
            self.call("Page.addScriptToEvaluateOnNewDocument", page.session, source=KEEP_ERRORS)
            self.call("Page.navigate", page.session, url=url)
        loaded = f"document.readyState == 'complete' && location.href == {json.dumps(url)}"
        until(lambda: page.run(loaded), f"{url} is loaded", within=PATIENCE)
        return page


class Page:
    def __init__(self, browser: Chromium, target: str, session: str) -> None:
        self.browser, self.target, self.session = browser, target, session
        self._is_open = True

    def close(self) -> None:
        if self._is_open:
            self._is_open = False
            self.browser.call("Target.closeTarget", targetId=self.target)

    def run(self, expression: str) -> Any:
        """The value of an expression of JavaScript."""
        arguments = {"expression": expression, "returnByValue": True, "awaitPromise": True}
        outcome = self.browser.call("Runtime.evaluate", self.session, **arguments)
        assert "exceptionDetails" not in outcome, f"{expression}: {outcome}"
        return outcome["result"].get("value")

    def errors(self) -> list[str]:
        """What has gone wrong on a page that was opened with `watched`: exceptions, and errors on its console."""
        found: list[str] = self.run("window.tricornErrors")
        return found

    def text(self) -> str:
        """What can be read on it, with single blanks between the words."""
        return re.sub(r"\s+", " ", self.run("document.body.innerText"))

    def see(self, words: str) -> None:
        try:
            until(lambda: words in self.text(), f"{words!r} can be read")
        except AssertionError as missing:
            raise AssertionError(f"{missing}; on the page: {self.text()!r}") from None

    def fill(self, selector: str, value: str) -> None:
        self.run(f"document.querySelector({json.dumps(selector)}).value = {json.dumps(value)}")

    def click(self, selector: str) -> None:
        self.run(f"document.querySelector({json.dumps(selector)}).click()")
