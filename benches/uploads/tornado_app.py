"""Takes a body as it comes, and answers."""

from __future__ import annotations

from tornado import web


@web.stream_request_body
class Upload(web.RequestHandler):
    def prepare(self) -> None:
        self.request.connection.set_max_body_size(1 << 40)  # type: ignore[union-attr]

    def data_received(self, chunk: bytes) -> None:
        pass

    def get(self) -> None:
        self.finish("ok")

    post = get


application = web.Application([("/", Upload)])
