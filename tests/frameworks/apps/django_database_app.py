"""Django with persistent connections to PostgreSQL, over the driver that the environment names."""

from __future__ import annotations

import os
import sys
from urllib.parse import parse_qs, urlsplit

if os.environ["DRIVER"] == "psycopg2":
    # Django takes psycopg 3 where it is installed.
    sys.modules["psycopg"] = None  # type: ignore[assignment]

import django
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.db import connection, transaction
from django.http import HttpRequest, JsonResponse
from django.urls import path

ADDRESS = urlsplit(os.environ["DATABASE_URL"])
FIELDS = parse_qs(ADDRESS.query)

settings.configure(
    ALLOWED_HOSTS=["*"],
    ROOT_URLCONF=__name__,
    SECRET_KEY="only for tests",
    LOGGING_CONFIG=None,
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": ADDRESS.path.strip("/"),
            "USER": ADDRESS.username,
            "HOST": FIELDS["host"][0],
            "PORT": FIELDS["port"][0],
            "CONN_MAX_AGE": int(os.environ["CONN_MAX_AGE"]),
            "CONN_HEALTH_CHECKS": True,
        }
    },
)
django.setup()


def driver(request: HttpRequest) -> JsonResponse:
    connection.ensure_connection()
    return JsonResponse(type(connection.connection).__module__.partition(".")[0], safe=False)


def work(request: HttpRequest) -> JsonResponse:
    """Two statements of a transaction with a pause between them, and who answered them."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid(), txid_current()::text")
        first = cursor.fetchone()
        cursor.execute("SELECT pg_sleep(%s)", [float(request.GET.get("seconds", "0"))])
        cursor.execute("SELECT pg_backend_pid(), txid_current()::text")
        second = cursor.fetchone()
    return JsonResponse({"first": first, "second": second})


urlpatterns = [path("driver", driver), path("work", work)]
application = get_wsgi_application()
