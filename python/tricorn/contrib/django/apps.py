"""The application of Django's registry."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig, apps
from django.core import checks


class TricornConfig(AppConfig):  # type: ignore[misc]  # Django has no types
    name = "tricorn.contrib.django"
    label = "tricorn"
    verbose_name = "tricorn"

    def ready(self) -> None:
        checks.register(check_order, checks.Tags.staticfiles)


def check_order(**_: Any) -> list[Any]:
    """Checks the order of applications: Django takes a command from the first one that has it."""
    names = [config.name for config in apps.get_app_configs()]
    if "django.contrib.staticfiles" not in names[: names.index(TricornConfig.name)]:
        return []
    return [
        checks.Error(
            f"{TricornConfig.name} stands after django.contrib.staticfiles in INSTALLED_APPS, whose runserver is used.",
            hint="Put it before django.contrib.staticfiles.",
            id="tricorn.E001",
        )
    ]
