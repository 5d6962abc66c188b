"""The blocks of `main.py`, launched as Gradio's quickstart has it."""

from __future__ import annotations

import sys

from main import blocks

blocks.launch(server_port=int(sys.argv[1]))
