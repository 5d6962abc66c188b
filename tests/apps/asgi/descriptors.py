"""The same for event loops."""

from __future__ import annotations

from asgi.plain import answering
from descriptors import answer  # the other one: this is asgi.descriptors

application = answering(lambda scope: answer(scope["path"]))
