"""Streamlit as an ASGI application: the script is script.py."""

from __future__ import annotations

import streamlit

app = streamlit.App("script.py")
