"""The application for Django under ASGI and WSGI: a view that is a coroutine function, and one that is not."""

# Installed where the servers are measured, not where they are type-checked.
# mypy: disable-error-code="import-not-found,import-untyped"

from __future__ import annotations

from django.conf import settings
from django.core.asgi import get_asgi_application
from django.core.wsgi import get_wsgi_application
from django.http import HttpRequest, JsonResponse
from django.urls import path

MIDDLEWARE = ["django.middleware.security.SecurityMiddleware", "django.middleware.common.CommonMiddleware"]
settings.configure(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], SECRET_KEY="none", MIDDLEWARE=MIDDLEWARE)


async def on_the_loop(request: HttpRequest) -> JsonResponse:
    return JsonResponse({"message": "Hello, World!", "items": [1, 2, 3]})


def in_a_thread(request: HttpRequest) -> JsonResponse:
    return JsonResponse({"message": "Hello, World!", "items": [1, 2, 3]})


urlpatterns = [path("async", on_the_loop), path("def", in_a_thread)]
app = get_asgi_application()
wsgi = get_wsgi_application()
