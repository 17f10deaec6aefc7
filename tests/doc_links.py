"""``python -m tests.doc_links``: what documentation names in this repository exists.

Sphinx checks references between pages of docs/ (``make docs``). Here are checked, in all Markdown files: links and
pictures, by their path; paths in code spans, such as `kafkadash/kafka/api.py`; targets of make; commands of manage.py.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Folders from which pages name paths.
BASES = (ROOT, *(ROOT / name for name in ("kafkadash", "tests", "docs", "templates")))
HISTORY = ("docs/adr/", "docs/development/moved-tests.md")  # they name files of their time
LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE = re.compile(r"`([^`\n]+)`")
FENCE = re.compile(r"^[ \t]*```.*?^[ \t]*```", re.DOTALL | re.MULTILINE)
PATH = re.compile(r"[\w.-]+(?:/[\w.-]+)+\.(?:py|md|html|js|css|yml|toml)")
MAKE = re.compile(r"\bmake ([a-z-]++)(?!\*)")  # make bench-* is many
MANAGE = re.compile(r"\bmanage\.py ([a-z][a-z_-]+)")
NOT_OURS = {"makemigrations", "migrate"}  # of Django


def main() -> int:
    faults = [f"{path.relative_to(ROOT)}: {fault}" for path in markdown_files() for fault in faults_of(path)]
    for fault in faults:
        sys.stderr.write(f"{fault}\n")
    return 1 if faults else 0


def markdown_files() -> list[Path]:
    return [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def faults_of(path: Path) -> Iterator[str]:
    text = path.read_text(encoding="utf-8")
    for link in LINK.findall(FENCE.sub("", text)):
        target = link.partition("#")[0]
        if target and "://" not in target and not target.startswith("mailto:") and not (path.parent / target).exists():
            yield f"the link to {link} leads nowhere"
    if path.relative_to(ROOT).as_posix().startswith(HISTORY):
        return
    spans = CODE.findall(FENCE.sub("", text))
    for span in spans:
        if PATH.fullmatch(span) and not any((base / span).exists() for base in BASES):
            yield f"there is no file {span}"
    for command in [*spans, *FENCE.findall(text)]:
        yield from (f"there is no target “{target}” in the Makefile" for target in unknown_targets(command))
        yield from (f"manage.py has no command “{name}”" for name in MANAGE.findall(command) if name not in commands())


def unknown_targets(command: str) -> list[str]:
    """Return the targets of make that the Makefile does not have."""
    known = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    return [target for target in MAKE.findall(command) if target not in known]


def commands() -> set[str]:
    folders = ROOT.glob("kafkadash/*/management/commands/*.py")
    return NOT_OURS | {path.stem for path in folders if path.stem != "__init__"}


if __name__ == "__main__":
    sys.exit(main())
