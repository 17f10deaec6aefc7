"""Pages as a signed-in viewer gets them, at a frozen time."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from html.parser import HTMLParser
from string import Formatter
from typing import Any

import pytest
import time_machine
from django.test import Client

from kafkadash.accounts.models import User
from kafkadash.changes.models import ChangeRequest
from kafkadash.clusters.models import Cluster
from kafkadash.core.messages import message_template
from tests.changes.kind_fixtures import parcels
from tests.changes.parcels import propose
from tests.factories import NOW, watched

__all__ = ["parcels"]


@pytest.fixture(autouse=True)
def frozen_time() -> Iterator[None]:
    with time_machine.travel(NOW, tick=False):
        yield


@pytest.fixture
def demo(db: None) -> Cluster:
    return watched("demo")


@pytest.fixture
def change(demo: Cluster, operator: User) -> ChangeRequest:
    return propose(demo, operator)


@pytest.fixture
def get_page(viewer: User, client_of: Callable[[User], Client]) -> Callable[[str], Page]:
    """The page behind an address, as a viewer of all clusters sees it. It must be there."""
    client = client_of(viewer)

    def get(address: str) -> Page:
        response = client.get(address)
        assert response.status_code == 200, (address, response.status_code)
        return Page.read(response)

    return get


@dataclass(frozen=True, slots=True)
class Page:
    """``context`` is what the view gave to its template, empty where only the HTML is looked at."""

    html: str
    context: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, response: Any) -> Page:
        html = response.content.decode()
        if "<main" in html and "data-chart=" in html:
            assert "js/charts.js" in html, "the page has charts, and no script that draws them"
        return cls(html, response.context or {})

    @property
    def title(self) -> str:
        return text_of(re.findall(r"<h1[^>]*>(.*?)</h1>", self.html, re.DOTALL)[0])

    @property
    def refusal(self) -> str:
        """The code of what was refused."""
        return self.first("#refused .error-code").text

    @property
    def text(self) -> str:
        """What a reader sees of the page's own content."""
        return text_of(self.html[self.html.index("<main") : self.html.index("</main>")])

    def part(self, id_: str) -> str:
        """The HTML from the start tag with this id to where its element ends."""
        start = re.search(rf'<(\w+)[^>]*\bid="{re.escape(id_)}"', self.html)
        assert start, f"there is no element {id_!r}"
        depth = 0
        for tag in re.finditer(rf"<(/?){start[1]}\b[^>]*>", self.html[start.start() :]):
            depth += -1 if tag[1] else 1
            if depth == 0:
                return self.html[start.start() : start.start() + tag.end()]
        raise AssertionError(f"{id_!r} is not closed")

    def words(self, id_: str) -> str:
        return text_of(self.part(id_))

    def start_tag(self, id_: str) -> str:
        return self.part(id_).split(">", 1)[0] + ">"

    def has(self, id_: str) -> bool:
        return f'id="{id_}"' in self.html

    def find(self, selector: str) -> list[Element]:
        """Return the elements that a selector of tags, #id, .class, [name] and [name=value] finds, in their order."""
        return element_tree(self.html).find(selector)

    def first(self, selector: str) -> Element:
        return element_tree(self.html).first(selector)

    def texts(self, selector: str) -> list[str]:
        return [element.text for element in self.find(selector)]

    def states(self, selector: str) -> list[str]:
        """Return what ``data-state`` says of each element."""
        return [element.get("data-state") for element in self.find(selector)]

    def figures(self, selector: str) -> list[str]:
        """Return the numbers that the first of these elements shows, each with its unit."""
        return figures_of(self.first(selector).text)

    def facts(self, selector: str) -> dict[str, str]:
        """Return what the lists of terms in these elements say of each term."""
        return {name: text for element in self.find(selector) for name, text in element.facts().items()}

    def cells(self, id_: str) -> list[str]:
        """Return what the cells of the row with this id show, from left to right."""
        return [cell.text for cell in self.first(f"[id={id_}]").children if isinstance(cell, Element)]

    def links(self, selector: str) -> list[str]:
        """Return where the links in these elements lead."""
        return [link.get("href") for link in self.find(f"{selector} a")]

    def tells(self, code: StrEnum, selector: str = "body") -> bool:
        """Return whether the first of these elements shows the message of a code, whatever its parameters are."""
        return told_in(self.first(selector).text, code)

    def order_of(self, *ids: str) -> list[str]:
        """These ids as they come in the page; those that are not in it are left out."""
        return sorted((i for i in ids if self.has(i)), key=lambda i: self.html.index(f'id="{i}"'))


@dataclass(eq=False, slots=True)
class Element:
    tag: str
    attributes: dict[str, str]
    children: list[Element | str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self._strings()).split())

    def get(self, name: str) -> str:
        """Return the value of an attribute, '' where it has none."""
        return self.attributes.get(name, "")

    def has(self, name: str) -> bool:
        return name in self.attributes

    def find(self, selector: str) -> list[Element]:
        found = [self]
        for simple in selector.split():
            inside = dict.fromkeys(each for element in found for each in element._descendants())
            found = [each for each in inside if each.matches(simple)]
        return found

    def first(self, selector: str) -> Element:
        found = self.find(selector)
        assert found, f"there is no element {selector!r}"
        return found[0]

    def texts(self, selector: str) -> list[str]:
        return [element.text for element in self.find(selector)]

    def facts(self) -> dict[str, str]:
        said: dict[str, list[str]] = {}
        name = ""
        for element in self._descendants():
            if element.tag == "dt":
                name = element.text
            elif element.tag == "dd":
                said.setdefault(name, []).append(element.text)
        return {name: " ".join(texts) for name, texts in said.items()}

    def matches(self, simple: str) -> bool:
        """``simple`` is a selector without a space."""
        tag = re.match(r"[\w-]*", simple)
        assert tag
        if tag[0] and tag[0] != self.tag:
            return False
        for mark, word, name, value in re.findall(r"([#.])([\w-]+)|\[([\w-]+)(?:=([^\]]*))?\]", simple):
            if (mark == "#" and self.get("id") != word) or (mark == "." and word not in self.get("class").split()):
                return False
            if name and (not self.has(name) or (value and self.get(name) != value)):
                return False
        return True

    def _descendants(self) -> Iterator[Element]:
        for child in self.children:
            if isinstance(child, Element):
                yield child
                yield from child._descendants()

    def _strings(self) -> Iterator[str]:
        for child in self.children:
            if isinstance(child, Element):
                yield from child._strings()
            else:
                yield child


_VOID = {"br", "col", "hr", "img", "input", "link", "meta", "source", "wbr"}


class _TreeParser(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.root = Element("", {})
        self._open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in _VOID:
            last = self._open[-1].children[-1]
            assert isinstance(last, Element)
            self._open.append(last)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._open[-1].children.append(Element(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        while len(self._open) > 1 and self._open.pop().tag != tag:
            pass

    def handle_data(self, data: str) -> None:
        self._open[-1].children.append(data)


@lru_cache(maxsize=8)
def element_tree(html: str) -> Element:
    parser = _TreeParser()
    parser.feed(html)
    return parser.root


def text_of(html: str) -> str:
    return element_tree(html).text


def told_in(text: str, code: StrEnum) -> bool:
    template = message_template(code)
    texts = filter(None, (template.text, template.many)) if template.text else (template.advice,)
    return any(re.search(_pattern_of(each), text) for each in texts)


def _pattern_of(template: str) -> str:
    parsed = Formatter().parse(template)
    return "".join(re.escape(said) + (".*" if name is not None else "") for said, name, _, _ in parsed)


_FIGURE = re.compile(
    r"(?<![\w#.,:-])[+−]?(?:"
    r"\d+ d(?: \d+ h)?\b|\d+ h(?: \d+ min)?\b|\d+ min(?: \d+ s)?(?![\w-])|\d+ s\b"
    r"|\d\d? (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)(?: \d\d:\d\d(?::\d\d)?)?"
    r"|\d[\d,]*(?:\.\d+)?(?::\d\d)*(?: (?:%|m?s|[kMGTP]?B(?:/s)?)(?!\w))?)"
)


def figures_of(text: str) -> list[str]:
    """Return the numbers in a text, each with its unit; not those in names."""
    return [figure.rstrip(",") for figure in _FIGURE.findall(text)]
