"""What a user's session runs, anew for each change of a widget."""

from __future__ import annotations

import streamlit

streamlit.title("Everyday")
name = streamlit.text_input("Name", "Ada")
streamlit.write(f"Hello, {name}!")
streamlit.download_button("Download", f"for {name}\n" * 1000, "file.txt")
if (file := streamlit.file_uploader("File")) is not None:
    streamlit.write(f"got {len(file.getvalue())} bytes")
