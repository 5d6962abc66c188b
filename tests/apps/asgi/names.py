"""The same for event loops."""

from __future__ import annotations

from asgi.plain import answering
from names import answer  # the other one: this is asgi.names

application = answering(lambda scope: answer(next((name for name, _ in scope["headers"] if name == b"x-same"), None)))
