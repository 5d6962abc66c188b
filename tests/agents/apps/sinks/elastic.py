"""Elastic APM: a transport of ours stands where its HTTP transport would."""

from __future__ import annotations

from typing import Any

from elasticapm.transport.base import Transport
from notes import note

SETTINGS = {
    "SERVICE_NAME": "shop",
    "TRANSPORT_CLASS": f"{__name__}.Sink",
    "CLOUD_PROVIDER": "none",
    "CENTRAL_CONFIG": False,
    "METRICS_INTERVAL": "0s",
}


class Sink(Transport):
    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.client = named.get("client") or arguments[0]

    def start_thread(self, pid: Any = None) -> None: ...

    def queue(self, event_type: str, data: Any, flush: bool = False) -> None:
        if event_type == "transaction":
            note(transaction=data["name"], result=data["result"], outcome=data["outcome"])
        elif event_type == "error":
            note(error=data["exception"]["type"], culprit=data["culprit"])


def prepare() -> None: ...


def instrument_flask(app: Any) -> None:
    from elasticapm.contrib.flask import ElasticAPM

    app.config["ELASTIC_APM"] = SETTINGS
    ElasticAPM(app)


def instrument_fastapi(app: Any) -> None:
    from elasticapm.contrib.starlette import ElasticAPM, make_apm_client

    app.add_middleware(ElasticAPM, client=make_apm_client(SETTINGS))
