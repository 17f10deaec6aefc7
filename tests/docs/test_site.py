"""The documentation is a site that loads nothing from other servers and has every page."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.doc_links import ROOT

pytestmark = pytest.mark.domain

LOADED = re.compile(
    r"<(?:link|script|img|source|iframe|object)\b[^>]*?\b(?:href|src|data)\s*=\s*[\"']?((?:https?:)?//[^\"'\s>]+)"
)
LOADED_BY_STYLE = re.compile(r"(?:url\(|@import)\s*[\"']?((?:https?:)?//[^\"')\s]+)")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "--nitpicky", "docs", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return folder


def test_site__each_page_of_docs__is_built(site: Path) -> None:
    pages = {path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")}
    assert pages
    assert [page for page in pages if not (site / page).is_file()] == []


def test_site__pages_and_styles__load_nothing_from_other_servers(site: Path) -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in site.rglob("*") if path.suffix in {".html", ".css"}}
    assert len(texts) > 20
    loaded = {path.name: LOADED.findall(text) + LOADED_BY_STYLE.findall(text) for path, text in texts.items()}
    assert {name: addresses for name, addresses in loaded.items() if addresses} == {}
