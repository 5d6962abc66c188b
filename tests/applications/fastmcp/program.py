"""The server of `main.py`, run as FastMCP's quickstart has it."""

from __future__ import annotations

import sys

from main import server

server.run(transport="http", port=int(sys.argv[1]), stateless_http=True, show_banner=False)
