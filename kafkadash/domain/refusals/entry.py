"""One entry of the catalogue."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Entry:
    """``what`` is refused or failed and why; ``then`` is what to do next, or what happens by itself.

    Both are templates for ``str.format`` with named values. ``what`` is '' where saying what to do says it all. ``key``
    is stable: it is how tests, pages and people refer to the entry.
    """

    key: str
    what: str
    then: str

    def __call__(self, **values: object) -> str:
        """The whole sentence. Raises KeyError where a value is missing."""
        return self.told("", **values)

    def cause(self, **values: object) -> str:
        """Without what to do next, for a place that shows that apart (``then``)."""
        return self.what.format(**values)

    def apart(self, **values: object) -> tuple[str, str]:
        """Both, for a place that says once for several what to do next."""
        return self.cause(**values), self.then.format(**values)

    def told(self, news: str, **values: object) -> str:
        """The same, with what is known besides (a sentence, or '') between the two."""
        return " ".join(filter(None, (self.what.format(**values), news, self.then.format(**values))))
