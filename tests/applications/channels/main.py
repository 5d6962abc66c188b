"""Django with Channels: async and sync views, a stream, uploads, and WebSocket consumers of both kinds."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator

import django
from channels.generic.http import AsyncHttpConsumer
from channels.generic.websocket import AsyncJsonWebsocketConsumer, WebsocketConsumer
from channels.routing import ProtocolTypeRouter, URLRouter
from django.conf import settings
from django.core.asgi import get_asgi_application
from django.http import FileResponse, HttpRequest, HttpResponse, JsonResponse, StreamingHttpResponse
from django.urls import path, re_path

settings.configure(
    ALLOWED_HOSTS=["127.0.0.1"],
    ROOT_URLCONF=__name__,
    SECRET_KEY="not a secret",
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    INSTALLED_APPS=["channels"],
    MIDDLEWARE=["django.middleware.common.CommonMiddleware", "django.middleware.gzip.GZipMiddleware"],
    CHANNEL_LAYERS={"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}},
)
django.setup()


def index(request: HttpRequest) -> HttpResponse:
    return HttpResponse("<html><body>" + "It works. " * 100 + "</body></html>")


async def answer(request: HttpRequest) -> HttpResponse:
    await asyncio.sleep(0)
    return JsonResponse({"answer": request.GET.get("question")})


def upload(request: HttpRequest) -> HttpResponse:
    return JsonResponse({name: hashlib.sha256(file.read()).hexdigest() for name, file in request.FILES.items()})


def download(request: HttpRequest) -> FileResponse:
    return FileResponse(open(__file__, "rb"), as_attachment=True)


async def numbers() -> AsyncIterator[str]:
    for number in range(300):
        yield f"data: {number}\n\n"
        await asyncio.sleep(0.01)


async def stream(request: HttpRequest) -> StreamingHttpResponse:
    return StreamingHttpResponse(numbers(), content_type="text/event-stream")


class Events(AsyncHttpConsumer):
    """A stream as Channels has it."""

    async def handle(self, body: bytes) -> None:
        await self.send_headers(headers=[(b"content-type", b"text/event-stream")])
        for number in range(300):
            await self.send_body(f"data: {number}\n\n".encode(), more_body=True)
            await asyncio.sleep(0.01)


class Chat(AsyncJsonWebsocketConsumer):
    groups = ("everybody",)

    async def receive_json(self, content: object) -> None:
        await self.channel_layer.group_send("everybody", {"type": "chat.said", "content": content})

    async def chat_said(self, event: dict[str, object]) -> None:
        await self.send_json(event["content"])


class Echo(WebsocketConsumer):
    def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        self.send(text_data, bytes_data)


class Refused(WebsocketConsumer):
    def connect(self) -> None:
        self.close()


urlpatterns = [
    path("", index),
    path("answer", answer),
    path("upload", upload),
    path("download", download),
    path("stream", stream),
]

app = ProtocolTypeRouter(
    {
        "http": URLRouter([path("events", Events.as_asgi()), re_path("", get_asgi_application())]),
        "websocket": URLRouter(
            [path("chat", Chat.as_asgi()), path("echo", Echo.as_asgi()), path("refused", Refused.as_asgi())]
        ),
    }
)
