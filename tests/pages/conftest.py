"""Pages as a signed-in viewer gets them, at a frozen time."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html.parser import HTMLParser

import pytest
import time_machine
from django.test import Client

from kafkadash.accounts.models import User
from tests.changes.kind_fixtures import parcels
from tests.factories import NOW

__all__ = ["parcels"]


@pytest.fixture(autouse=True)
def frozen_time() -> Iterator[None]:
    with time_machine.travel(NOW, tick=False):
        yield


@pytest.fixture
def get_page(viewer: User, client_of: Callable[[User], Client]) -> Callable[[str], Page]:
    """The page behind an address, as a viewer of all clusters sees it. It must be there."""
    client = client_of(viewer)

    def get(address: str) -> Page:
        response = client.get(address)
        assert response.status_code == 200, (address, response.status_code)
        return Page(response.content.decode())

    return get


@dataclass(frozen=True, slots=True)
class Page:
    html: str

    @property
    def title(self) -> str:
        return text_of(re.findall(r"<h1[^>]*>(.*?)</h1>", self.html, re.DOTALL)[0])

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

    def order_of(self, *ids: str) -> list[str]:
        """These ids as they come in the page; those that are not in it are left out."""
        return sorted((i for i in ids if self.has(i)), key=lambda i: self.html.index(f'id="{i}"'))


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_data(self, data: str) -> None:
        self.found.append(data)


def text_of(html: str) -> str:
    parser = _Text()
    parser.feed(html)
    return " ".join(" ".join(parser.found).split())
