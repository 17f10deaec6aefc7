"""Server-side filter, sort order and paging of a list, read from the query string, and URLs of its other views.

Every view of a list has a URL. A parameter value that the list does not know is ignored and reported in ``problems``,
so that a mistyped URL never looks like an empty cluster.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

from django.core.paginator import Page, Paginator
from django.http import QueryDict

from kafkadash.core.errors import RequestErrorCode
from kafkadash.core.messages import message_text

PAGE_SIZE = 100
LONGEST_TEXT = 255


@dataclass(frozen=True)
class FilterChoice:
    """A filter of which one value of a few may be chosen: parameter, what it is called, and value → word."""

    name: str
    noun: str
    words: Mapping[str, str]


class ListQuery:
    """Parameters of one list, from the query string of an address.

    ``choices`` are filters with known values, ``texts`` names of filters with free text, ``exact`` of those whose
    spaces count. ``sorts`` maps a column's parameter to the fields it sorts by, each ascending; the first is the one
    used when none is asked for. Columns in ``descending_first`` are sorted from the greatest when first chosen.
    """

    def __init__(
        self,
        query: QueryDict,
        *,
        choices: Sequence[FilterChoice] = (),
        texts: Sequence[str] = (),
        exact: Sequence[str] = (),
        sorts: Mapping[str, Sequence[Any]],
        descending_first: Collection[str] = (),
    ) -> None:
        self.problems: list[str] = []
        self.values: dict[str, str] = {name: _text(query, name).strip()[:LONGEST_TEXT] for name in texts}
        self.values |= {name: _text(query, name)[:LONGEST_TEXT] for name in exact}
        self._sorts = sorts
        self._descending_first = descending_first
        for choice in choices:
            asked = query.get(choice.name, "")
            if asked and asked not in choice.words:
                known = ", ".join(value for value in choice.words if value)
                self.problems.append(
                    message_text(RequestErrorCode.CHOICE_UNKNOWN, noun=choice.noun, asked=asked[:60], known=known)
                )
                asked = ""
            self.values[choice.name] = asked
        self.sort, self.descending = self._read_sort(query.get("sort", ""))
        self.page_number = query.get("page")

    @property
    def filtered(self) -> bool:
        return any(self.values.values())

    @cached_property
    def default_sort(self) -> str:
        return next(iter(self._sorts))

    @property
    def sort_parameter(self) -> str:
        """Sort parameter as the address has it; '' for the default order."""
        used = ("-" if self.descending else "") + self.sort
        default = ("-" if self.default_sort in self._descending_first else "") + self.default_sort
        return "" if used == default else used

    def address(self, **changes: str) -> str:
        """The query string of this list with some parameters changed, from its first page: ``?state=fenced``."""
        values = {**self.values, "sort": self.sort_parameter, **changes}
        text = urlencode({name: value for name, value in values.items() if value})
        return f"?{text}" if text else "?"

    def sort_address(self, column: str) -> str:
        """Sorts by this column; the other way round where it is the one already."""
        descending = not self.descending if column == self.sort else column in self._descending_first
        parameter = ("-" if descending else "") + column
        default = ("-" if self.default_sort in self._descending_first else "") + self.default_sort
        return self.address(sort="" if parameter == default else parameter)

    def order(self) -> list[Any]:
        """For ``order_by``. Unknown values come last whichever way the list is sorted."""
        fields = list(self._sorts[self.sort])
        first, rest = fields[0], fields[1:]
        return [first.desc(nulls_last=True) if self.descending else first.asc(nulls_last=True), *rest]

    def page_of(self, rows: Any, size: int = PAGE_SIZE) -> Page[Any]:
        """Return a page of a queryset or list; an invalid page number gives the nearest page."""
        return Paginator(rows, size).get_page(self.page_number)

    def _read_sort(self, value: str) -> tuple[str, bool]:
        column = value.removeprefix("-")
        if value and column not in self._sorts:
            self.problems.append(
                message_text(
                    RequestErrorCode.COLUMN_UNKNOWN,
                    column=column[:60],
                    instead=self.default_sort,
                    columns=", ".join(self._sorts),
                )
            )
            value = ""
        if not value:
            return self.default_sort, self.default_sort in self._descending_first
        return column, value.startswith("-")


def _text(query: QueryDict, name: str) -> str:
    """Without NUL, which PostgreSQL takes in no text: nothing that is stored has one."""
    return query.get(name, "").replace("\x00", "")
