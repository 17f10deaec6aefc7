"""Checks commit subjects: ``python -m tests.commit_subjects`` since FIRST, or ``… FILE``, a message, as a hook."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

FIRST = "88d076d"
"""The commit before the first one whose subject follows the rule."""
LONGEST = 72
TYPES = ("build", "chore", "ci", "docs", "feat", "fix", "perf", "refactor", "style", "test")
SUBJECT = re.compile(rf"(?:{'|'.join(TYPES)})(?:\([a-z0-9-]+\))?: [a-z0-9]\S*(?: .*)?[^.\s]")


def explain_subject(subject: str) -> str:
    """Return what is wrong with a subject, '' where it is as it should be."""
    if len(subject) > LONGEST:
        return f"has {len(subject)} characters, at most {LONGEST} are allowed"
    if not SUBJECT.fullmatch(subject):
        return "is not type(scope): imperative, such as “fix(kafka): close idle sockets”"
    return ""


def read_subjects() -> list[str]:
    """Return subjects of this checkout's commits since FIRST; in a shallow clone, of those that are there."""
    known = subprocess.run(["git", "cat-file", "-e", f"{FIRST}^{{commit}}"], capture_output=True, check=False)
    commits = [f"{FIRST}..HEAD"] if known.returncode == 0 else ["-1", "HEAD"]
    log = ["git", "log", "--no-merges", "--format=%s", *commits]
    return subprocess.run(log, capture_output=True, text=True, check=True).stdout.splitlines()


def main(arguments: list[str]) -> int:
    subjects = [Path(arguments[0]).read_text(encoding="utf-8").split("\n")[0]] if arguments else read_subjects()
    faults = [f"“{subject}” {fault}." for subject in subjects if (fault := explain_subject(subject))]
    sys.stdout.write("".join(f"{fault}\n" for fault in faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
