"""The page with its files, and the session that its script opens: widgets, a download, an upload, tabs that vanish."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from socket import SHUT_RDWR
from typing import Any

from browser import PATIENCE, Browser, visit
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.Common_pb2 import FileUploaderState, UploadedFileInfo
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.sync.client import ClientConnection, connect

CONTENT = bytes(range(256)) * 8_000


class Session:
    def __init__(self, browser: Browser, socket: ClientConnection) -> None:
        self.browser = browser
        self.socket = socket
        self.session_id = ""
        self.elements: dict[str, Any] = {}
        self.said: list[str] = []

    def tell(self, **fields: Any) -> None:
        self.socket.send(BackMsg(**fields).SerializeToString())

    def messages(self) -> Iterator[ForwardMsg]:
        while True:
            message = ForwardMsg.FromString(self.socket.recv(PATIENCE))
            if message.WhichOneof("type") != "ref_hash":
                yield message

    def run(self, *states: WidgetState) -> list[str]:
        """Runs the script with these values of widgets; what it writes."""
        self.said = []
        message = BackMsg()
        message.rerun_script.widget_states.widgets.extend(states)
        self.socket.send(message.SerializeToString())
        for message in self.messages():
            kind = message.WhichOneof("type")
            if kind == "new_session":
                self.session_id = message.new_session.initialize.session_id or self.session_id
            elif kind == "delta":
                element = message.delta.new_element
                name = element.WhichOneof("type")
                if name == "markdown":
                    self.said.append(element.markdown.body)
                elif name:
                    self.elements[name] = getattr(element, name)
            elif kind == "script_finished":
                return self.said
        raise AssertionError("unreachable")

    def upload(self, content: bytes) -> FileUploaderState:
        message = BackMsg()
        message.file_urls_request.request_id = "1"
        message.file_urls_request.file_names.append("file.bin")
        message.file_urls_request.session_id = self.session_id
        self.socket.send(message.SerializeToString())
        (urls,) = next(m for m in self.messages() if m.HasField("file_urls_response")).file_urls_response.file_urls
        token = self.browser.client.cookies.get("_streamlit_xsrf", "")
        reply = self.browser.client.put(
            urls.upload_url, files={"file": ("file.bin", content)}, headers={"X-Xsrftoken": token}
        )
        assert reply.status_code == 204, f"{reply.status_code} {reply.text[:500]}"
        info = UploadedFileInfo(file_id=urls.file_id, name="file.bin", size=len(content), file_urls=urls)
        return FileUploaderState(uploaded_file_info=[info])


@contextmanager
def session(browser: Browser) -> Iterator[Session]:
    headers = {"Cookie": "; ".join(f"{name}={value}" for name, value in browser.client.cookies.items())}
    url = f"ws://127.0.0.1:{browser.port}/_stcore/stream"
    with connect(
        url, subprotocols=["streamlit"], origin=browser.base, additional_headers=headers, proxy=None, max_size=None
    ) as socket:
        assert socket.subprotocol == "streamlit"
        yield Session(browser, socket)


def use(browser: Browser) -> dict[str, object]:
    with session(browser) as tab:
        seen: dict[str, object] = {"first": tab.run()}
        name = WidgetState(id=tab.elements["text_input"].id, string_value="Grace")
        seen["named"] = tab.run(name)
        seen["download"] = len(browser.get(tab.elements["download_button"].url).content)
        state = tab.upload(CONTENT)
        seen["upload"] = tab.run(
            name, WidgetState(id=tab.elements["file_uploader"].id, file_uploader_state_value=state)
        )
    return seen


def vanish(browser: Browser) -> list[str]:
    """The connection ends without a word while the script runs again."""
    with session(browser) as tab:
        seen = tab.run()
        tab.tell(app_heartbeat=True)
        message = BackMsg()
        message.rerun_script.query_string = ""
        tab.socket.send(message.SerializeToString())
        tab.socket.socket.shutdown(SHUT_RDWR)
        return seen


def steps(browser: Browser) -> dict[str, object]:
    return {
        "assets": browser.load("/"),
        "health": browser.get("/_stcore/health").text,
        "host": sorted(browser.get("/_stcore/host-config").json()),
        "sessions": [use(browser) for _ in range(3)],
        "gone": [vanish(browser) for _ in range(3)],
        "after": browser.get("/_stcore/health").text,
    }


visit(steps)
