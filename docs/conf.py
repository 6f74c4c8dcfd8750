"""The documentation site: `make docs`. Plain files, no request to another host when it is read."""

import importlib.metadata

project = "Fanlight"
author = "The Fanlight authors"
copyright = author
version = release = importlib.metadata.version("fanlight")

extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["decisions/0000-template.md"]
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]

html_theme = "furo"
html_title = "Fanlight"
html_static_path: list[str] = []
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {"top_of_page_buttons": []}
