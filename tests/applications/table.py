"""The applications, each with the server that its documentation starts it with.

A row is a name: of requirements/applications/NAME.txt, and of a folder here unless `folder` names another one's. The
folder has what the documentation's quickstart has (`main.py`), and `visit.py`, which does what a user's browser or
client does, and prints what it has seen. `{port}` stands for the port. Where users start a program that starts the
server, it is `program.py`.
"""

from __future__ import annotations

from typing import NamedTuple

UVICORN = ("uvicorn", "main:app", "--port", "{port}")


class Application(NamedTuple):
    app: str = "main:app"
    """What tricorn is given."""
    reference: tuple[str, ...] = UVICORN
    """The documented command."""
    folder: str = ""
    has_program: bool = False
    """Its folder has a `program.py`, which starts uvicorn by itself."""
    keeps_sessions: bool = False
    """In the memory of one process: several workers serve it by `affinity`."""
    variables: dict[str, str] = {}  # noqa: RUF012  (never changed)


APPLICATIONS = {
    "channels": Application(),
    "chainlit": Application(),
    "datasette": Application(),
    "fastmcp": Application(has_program=True, keeps_sessions=True),
    "gradio": Application(has_program=True, variables={"GRADIO_ANALYTICS_ENABLED": "False", "HF_HUB_OFFLINE": "1"}),
    "litellm": Application(
        app="litellm.proxy.proxy_server:app",
        reference=("litellm", "--config", "config.yaml", "--port", "{port}"),
        # What the command hands over by its flag; and without the network there is no list of prices to fetch.
        variables={"CONFIG_FILE_PATH": "config.yaml", "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
    ),
    "mcp": Application(keeps_sessions=True),
    "mcp1": Application(folder="mcp", keeps_sessions=True),
    "nicegui": Application(has_program=True, keeps_sessions=True),
    "sse": Application(),
    # `streamlit run` starts uvicorn, too, with this application around the script.
    "streamlit": Application(variables={"STREAMLIT_BROWSER_GATHER_USAGE_STATS": "false"}),
}
