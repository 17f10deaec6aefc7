"""Configuration of the documentation site: ``make docs`` builds it into var/docs."""

from __future__ import annotations

import tomllib
from pathlib import Path

from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx

_PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]

project = "kafkadash"
version = release = _PROJECT["version"]
copyright = "the kafkadash contributors, Apache-2.0"  # noqa: A001  Sphinx's name

extensions = ["myst_parser"]
myst_heading_anchors = 3

html_theme = "furo"
html_title = f"kafkadash {version}"
html_static_path: list[str] = []
html_copy_source = False
html_show_sourcelink = False
templates_path: list[str] = []


def setup(app: Sphinx) -> None:
    # Diagrams are shown as their source: the library that draws them would come from another server.
    app.add_lexer("mermaid", TextLexer)
