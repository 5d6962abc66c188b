"""The sample application in Falcon."""

from __future__ import annotations

import hashlib
from pathlib import Path

import falcon

FILE = Path(__file__).with_name("file.bin")


class Hello:
    def on_get(self, req: falcon.Request, resp: falcon.Response, name: str) -> None:
        resp.text = f"Hello, {name}!"


class Form:
    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        resp.media = req.get_media()


class Upload:
    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        answer: dict[str, object] = {}
        for part in req.get_media():
            if part.name == "note":
                answer["note"] = part.text
            else:
                data = part.stream.read()
                answer.update(name=part.filename, size=len(data), sha256=hashlib.sha256(data).hexdigest())
        resp.media = answer


class Stream:
    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        resp.content_type = falcon.MEDIA_TEXT
        resp.stream = (f"line {number}\n".encode() for number in range(100))


class Cookies:
    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        resp.text = req.cookies.get("seen", "never")
        resp.set_cookie("seen", "yes")
        resp.set_cookie("other", "b")


class File:
    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        resp.content_type = "application/octet-stream"
        resp.set_stream(FILE.open("rb"), FILE.stat().st_size)


class Error:
    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        raise RuntimeError("framework marker")


application = falcon.App()
application.add_route("/hello/{name}", Hello())
application.add_route("/form", Form())
application.add_route("/upload", Upload())
application.add_route("/stream", Stream())
application.add_route("/cookies", Cookies())
application.add_route("/file", File())
application.add_route("/error", Error())
