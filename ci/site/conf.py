# SPDX-License-Identifier: BSD-3-Clause
"""What Sphinx does with the pages that ci/site/stage.py laid out. Nothing is fetched when a page is looked at."""

from importlib.metadata import version as version_of

project = "Cadge"
author = "The Cadge authors"
project_copyright = "the Cadge authors, BSD-3-Clause"
release = version = version_of("cadge")
language = "en"

extensions = ["myst_parser"]
myst_heading_anchors = 6  # every heading can be linked to, by the words that a forge makes of it
root_doc = "index"
suppress_warnings = ["misc.highlighting_failure"]  # a piece of code that is cut short is no fault of its page
smartquotes = False  # options are written as they are typed

html_theme = "furo"
html_title = f"Cadge {version}"
html_static_path = ["site.css"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
