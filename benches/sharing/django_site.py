"""Django with what most sites have: the admin, sessions, messages, and a page from a template."""

from __future__ import annotations

from typing import Any

import django
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import HttpRequest, HttpResponse
from django.template import engines
from django.urls import path

APPS = ("admin", "auth", "contenttypes", "sessions", "messages", "staticfiles", "humanize", "sitemaps", "syndication")
PAGE = "{% for row in rows %}<li>{{ row.name }}: {{ row.price|floatformat:2 }}</li>{% endfor %}"

settings.configure(
    ALLOWED_HOSTS=["*"],
    SECRET_KEY="for measurements",
    ROOT_URLCONF=__name__,
    INSTALLED_APPS=[f"django.contrib.{name}" for name in APPS],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    MIDDLEWARE=[
        "django.middleware.security.SecurityMiddleware",
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.middleware.common.CommonMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
        "django.contrib.messages.middleware.MessageMiddleware",
    ],
    TEMPLATES=[
        {
            "BACKEND": "django.template.backends.django.DjangoTemplates",
            "OPTIONS": {
                "context_processors": [
                    "django.template.context_processors.request",
                    "django.contrib.auth.context_processors.auth",
                    "django.contrib.messages.context_processors.messages",
                ]
            },
        }
    ],
)
django.setup()


def page(request: HttpRequest) -> HttpResponse:
    rows: list[dict[str, Any]] = [{"name": f"item {number}", "price": number / 3} for number in range(20)]
    return HttpResponse(engines["django"].from_string(PAGE).render({"rows": rows}, request))


def urls() -> list[Any]:
    from django.contrib import admin

    return [path("", page), path("admin/", admin.site.urls)]


urlpatterns = urls()
app = get_wsgi_application()
