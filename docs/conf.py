"""Sphinx's settings for the documentation site. `make docs` builds it: scripts/build_site.py says how."""

from __future__ import annotations

import os

project = "tricorn"
author = "the tricorn developers"
version = release = os.environ.get("TRICORN_VERSION", "")
html_title = f"tricorn {version}".strip()

extensions = ["myst_parser", "sphinx_copybutton", "sphinx_design"]
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence", "deflist"]
exclude_patterns = ["_static", "_templates"]
templates_path = ["_templates"]

# The button copies commands, and neither prompts nor output.
copybutton_prompt_text = "$ "
nitpicky = True

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
html_show_copyright = False
html_theme_options = {"navigation_with_keys": True, "top_of_page_buttons": []}
pygments_style = "friendly"
pygments_dark_style = "monokai"
