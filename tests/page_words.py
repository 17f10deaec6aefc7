"""``make check-words``: texts that people read follow the rules of docs/language.md.

Catalogues of messages, texts of templates, literals of the code that are shown, and runbooks are checked for
the length of sentences and headings, and words that this product does not use. ``python -m tests.page_words PATH…``
checks only files below these paths; catalogues belong to the ``messages.py`` that has them. Rendered pages are checked
by ``tests/pages/test_markup.py``.
"""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LONGEST_SENTENCE, LONGEST_TITLE = 25, 8
UNUSED_WORDS = re.compile(
    r"\b(?:said|told|nobody|somebody|whoever|mend(?:s|ed|ing)?|way back|reckon\w*|anew|of which|goes on|go on|"
    r"stands? still|tak(?:e|es|en) (?:back|away)|by (?:it|them)selve?s?|by itself|look(?:s|ed)? at|(?:is|are|was) away|"
    r"what (?:is|was|were|has|had|it|lies|stands|happens|became|becomes)|who (?:is|has) (?:asked|wanted)|"
    r"brakes?|reigns?|deeds?|lies|asked for|wanted|kept of|meanwhile|beside it|likewise)\b",
    re.IGNORECASE,
)
_PLACEHOLDER = re.compile(r"{{.*?}}|{[^{}]*}")
_TEMPLATE_CODE = re.compile(r"{#.*?#}|{%\s*comment.*?endcomment\s*%}|<script.*?</script>|<style.*?</style>", re.DOTALL)
_HEADING = re.compile(r"<h1[^>]*>(.*?)</h1>", re.DOTALL)
_MARKUP = re.compile(r"<[^>]*>")
_CHOICE = re.compile(r"{%.*?%}", re.DOTALL)
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z“{0-9])")
_DOC_CODE = re.compile(r"```.*?```|`[^`]*`|\]\([^)]*\)|<!--.*?-->", re.DOTALL)


def count_words(text: str) -> int:
    """Return the words of a text; a placeholder is one word, a sign between words is none."""
    return len([word for word in _PLACEHOLDER.sub(" X ", text).split() if re.search(r"\w", word)])


def sentence_faults(text: str) -> Iterator[str]:
    """Yield what is against the rules in a text of one or more sentences."""
    for sentence in _SENTENCE.split(text.strip()):
        if (words := count_words(sentence)) > LONGEST_SENTENCE:
            yield f"{words} words, at most {LONGEST_SENTENCE}: {sentence}"
    yield from unused_word_faults(text)


def unused_word_faults(text: str) -> Iterator[str]:
    for found in UNUSED_WORDS.finditer(_PLACEHOLDER.sub(" X ", text)):
        yield f"“{found[0]}” is not used: {' '.join(text.split())[:160]}"


def title_faults(title: str) -> Iterator[str]:
    if (words := count_words(title)) > LONGEST_TITLE:
        yield f"title of {words} words, at most {LONGEST_TITLE}: {' '.join(title.split())}"
    yield from unused_word_faults(title)


def code_faults(path: Path) -> Iterator[str]:
    """Yield faults of literals that have two words or more; docstrings and texts for logs are not shown on pages."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    hidden = {id(each) for node in ast.walk(tree) for each in _hidden_literals(node)}
    for node in ast.walk(tree):
        if id(node) in hidden:
            continue
        text = _literal(node)
        if " " in text.strip() and not re.search(r"\b(?:SELECT|INSERT|UPDATE|DELETE|CREATE|FROM)\b", text):
            yield from (f"{path.relative_to(ROOT)}:{node.lineno}: {fault}" for fault in sentence_faults(text))  # type: ignore[attr-defined]


def _literal(node: ast.AST) -> str:
    if isinstance(node, ast.JoinedStr):
        return _MARKUP.sub(
            " ", "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
        )
    return _MARKUP.sub(" ", node.value) if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _hidden_literals(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Expr):
        yield node.value
    if isinstance(node, ast.JoinedStr):
        yield from node.values
    if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[0] in {"log", "logger", "logging", "_log"}:
        yield from (each for argument in node.args for each in ast.walk(argument))
    if isinstance(node, ast.Raise | ast.Assert):
        yield from ast.walk(node)


def template_faults(path: Path) -> Iterator[str]:
    source = _TEMPLATE_CODE.sub(" ", path.read_text(encoding="utf-8"))
    faults = [
        fault for heading in _HEADING.findall(source) for title in _variants(heading) for fault in title_faults(title)
    ]
    for part in re.split(
        r"</?(?:p|div|li|td|th|dt|dd|h\d|label|button|a|span|section|summary|option|legend)\b[^>]*>", source
    ):
        text = " ".join(_CHOICE.sub(" ", _MARKUP.sub(" ", part)).split())
        faults += unused_word_faults(text)
    yield from (f"{path.relative_to(ROOT)}: {fault}" for fault in dict.fromkeys(faults))


def _variants(heading: str) -> Iterator[str]:
    """Yield the texts of a heading, one for each branch of its last condition."""
    text = _MARKUP.sub(" ", heading)
    yield from (_CHOICE.sub(" ", part) for part in re.split(r"{%\s*(?:elif|else).*?%}", text))


def page_faults(path: Path) -> Iterator[str]:
    text = _DOC_CODE.sub(" X ", path.read_text(encoding="utf-8"))
    for paragraph in re.split(r"\n\s*\n|\n(?=[-*#|0-9])", text):
        for fault in unused_word_faults(" ".join(paragraph.split())):
            yield f"{path.relative_to(ROOT)}: {fault}"


def catalogue_faults() -> Iterator[str]:
    """Yield faults of registered messages, with their code."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kafkadash.settings")
    import django

    django.setup()
    from kafkadash.core.messages import registered_messages
    from kafkadash.findings.messages import FindingTemplate

    for code, message in registered_messages().items():
        parts = [message.text, message.many, message.advice]
        if isinstance(message, FindingTemplate):
            parts.append(message.detail)
        yield from (f"{code}: {fault}" for part in parts if part for fault in sentence_faults(part))


def find_faults(below: list[Path]) -> list[str]:
    def chosen(folder: str, pattern: str) -> list[Path]:
        paths = (path for path in sorted((ROOT / folder).rglob(pattern)) if "migrations" not in path.parts)
        return [path for path in paths if not below or any(path.is_relative_to(each) for each in below)]

    faults = [fault for path in chosen("kafkadash", "*.py") for fault in code_faults(path)]
    faults += [fault for path in chosen("templates", "*.html") for fault in template_faults(path)]
    faults += [fault for path in chosen("docs/runbooks", "*.md") for fault in page_faults(path)]
    return faults if below else [*faults, *catalogue_faults()]


def main(arguments: list[str]) -> int:
    faults = find_faults([Path(argument).resolve() for argument in arguments])
    sys.stdout.write("".join(f"{fault}\n" for fault in faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
