"""An order is confirmed when Kafka has it: produce, and flush. Nothing here knows of greenlets or threads.

Kafka is librdkafka's own mock, in the process of each worker, whose broker takes 200 ms to answer.
"""

from __future__ import annotations

import os
import threading
from typing import Any

from confluent_kafka import Producer
from flask import Flask, Response, jsonify

app = Flask(__name__)
producer = Producer(
    {
        "test.mock.num.brokers": 1,
        "test.mock.broker.rtt": int(os.environ.get("RTT_MS", "200")),
        "linger.ms": 0,
    }
)


@app.get("/flush")
def order() -> Response:
    """Answers when the order is delivered."""
    reports: list[dict[str, Any]] = []

    def delivered(error: Any, message: Any) -> None:
        reports.append({"error": error and str(error), "offset": message.offset(), "thread": threading.get_native_id()})

    producer.produce("orders", b"an order", on_delivery=delivered)
    left = producer.flush(30)
    return jsonify(reports=reports, left=left, pid=os.getpid(), thread=threading.get_native_id())


@app.get("/ping")
def ping() -> str:
    """Has nothing to do with Kafka."""
    return "pong\n"
