"""Topics as the wizard lets them be chosen, in a list, by name or by a regular expression, and how much that is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.conf import settings
from django.core.paginator import Page, Paginator

from kafkadash.changes.plan import PlanErrorCode
from kafkadash.clusters.models import Cluster
from kafkadash.core.errors import UserError
from kafkadash.core.formatting import format_size
from kafkadash.core.messages import CodedMessage, choose_plural, coded, first_names
from kafkadash.monitoring.models import TopicState
from kafkadash.planning.errors import ReassignmentErrorCode
from kafkadash.planning.topic_match import CPU_S

LONGEST_PATTERN = 500
MOST_AT_ONCE = 2
"""Processes that match, of one web process: each may take ``CPU_S`` of a processor and half a gigabyte."""
_WAIT_S = 15.0
"""For a machine that is busy; the process itself has ``CPU_S`` of a processor."""
_PLACE_S = 1.0
"""For a place among those at once; what somebody types is tried again with his next key anyway."""

_places = threading.BoundedSemaphore(MOST_AT_ONCE)
_lock = threading.Lock()
_children: dict[int, subprocess.Popen[bytes]] = {}
"""By the key of the person for whom each matches."""


class BadChoice(UserError):
    """``field`` ("topics", "pattern" or "excluded") is wrong; ``str()`` says how."""

    def __init__(self, field: str, why: CodedMessage) -> None:
        super().__init__(why)
        self.field = field


class TooManyAtOnce(BadChoice):
    """Refusal of a choice: no place for one more process, or the same person asked for another choice meanwhile."""


@dataclass(frozen=True, slots=True)
class CountedTopics:
    """Topics chosen out of ``total``. ``size_bytes`` of all replicas, rounded, without the ``unsized`` topics."""

    topics: int
    total: int
    partitions: int
    size_bytes: int
    unsized: int

    @property
    def words(self) -> str:
        """Return a text such as "12 of 340 topics, 1,204 partitions, about 3.1 TB"."""
        which = f"all {choose_plural('# topic|# topics', self.total)}" if self.topics == self.total else self._some
        words = f"{which}, {choose_plural('# partition|# partitions', self.partitions)}"
        if self.unsized == self.topics:
            return f"{words}, of unknown size"
        words += f", about {format_size(self.size_bytes)} including replicas"
        if self.unsized:
            words += f", excluding {choose_plural('# topic|# topics', self.unsized)} of unknown size"
        return words

    @property
    def _some(self) -> str:
        return f"{self.topics:,} of {choose_plural('# topic|# topics', self.total)}"


@dataclass(frozen=True, slots=True)
class TopicSize:
    """A topic as last read. ``size_bytes`` of all replicas, rounded; None where unknown."""

    name: str
    partitions: int
    size_bytes: int | None
    internal: bool


def read_topics(cluster: Cluster) -> dict[str, TopicSize]:
    """Return the topics of a cluster by name, sorted, with one query."""
    columns = ("name", "partition_count", "size_bytes", "internal")
    rows = TopicState.objects.filter(cluster=cluster).order_by("name").values_list(*columns)
    return {row[0]: TopicSize(*row) for row in rows}


PICKER_PAGE = 50


@dataclass(frozen=True, slots=True)
class TopicPicker:
    """Page of the list in which topics are ticked.

    ``matching`` topics match the search, of which the box above the list ticks ``tickable``. ``chosen`` of these are
    ticked, ``elsewhere`` of them on other pages. ``held`` are all that are ticked and not on this page, ``unknown`` are
    ticked and not in the cluster.
    """

    page: Page[TopicSize]
    search: str
    only_ticked: bool
    ticked: frozenset[str]
    matching: int
    tickable: int
    chosen: int
    elsewhere: int
    held: Sequence[str]
    unknown: Sequence[str]

    @property
    def state(self) -> str:
        """Return the state of the box above the list, as aria-checked has it."""
        if not self.chosen:
            return "false"
        return "true" if self.chosen == self.tickable else "mixed"

    @property
    def rows(self) -> Sequence[tuple[TopicSize, bool]]:
        return [(topic, topic.name in self.ticked) for topic in self.page.object_list]


TICK_ALL, TICK_NONE, SEARCH = "all", "none", "search"


def build_picker(
    topics: Mapping[str, TopicSize],
    ticked: Collection[str],
    *,
    act: str = "",
    search: str = "",
    only_ticked: bool = False,
    page: str = "1",
    internal: bool = True,
) -> TopicPicker:
    """Return the list after ``act``: all that match are ticked or none, a search begins anew, or a page is opened.

    ``internal``: internal topics are ticked with the others; else only one by one.
    """
    needle, before = search.casefold(), frozenset(ticked)
    matching = [t for t in topics.values() if needle in t.name.casefold() and (not only_ticked or t.name in before)]
    tickable = {topic.name for topic in matching if internal or not topic.internal}
    after = before | tickable if act == TICK_ALL else before - tickable if act == TICK_NONE else before
    shown = Paginator(matching, PICKER_PAGE).get_page(act if act.isascii() and act.isdigit() else page)
    if act == SEARCH:
        shown = shown.paginator.get_page(1)
    here = {topic.name for topic in shown.object_list}
    return TopicPicker(
        page=shown,
        search=search,
        only_ticked=only_ticked,
        ticked=after,
        matching=len(matching),
        tickable=len(tickable),
        chosen=len(after & tickable),
        elsewhere=len((after & tickable) - here),
        held=sorted((after & topics.keys()) - here),
        unknown=sorted(after - topics.keys()),
    )


def names_in(typed: str) -> tuple[str, ...]:
    """Return the names of topics, typed with commas or blanks between them: sorted, each once."""
    return tuple(sorted(set(typed.replace(",", " ").split())))


def count_choice(
    cluster: Cluster,
    topics: Sequence[str],
    pattern: str,
    excluded: str,
    *,
    internal: bool = True,
    known: Mapping[str, TopicSize] | None = None,
    typed_by: int | None = None,
) -> CountedTopics:
    """Count the topics chosen on a cluster, as last read. Raises BadChoice, also where no topic is chosen.

    ``internal`` as in ``PlanRequest``. ``known``: the topics of the cluster, where they were read already.
    ``typed_by``: key of the person who is still typing; what was asked for him before is given up. Only then it raises
    TooManyAtOnce soon; a choice that is sent waits for its place.
    """
    rows = read_topics(cluster) if known is None else known
    chosen = choose_topics(rows, topics, pattern, excluded, internal=internal, typed_by=typed_by)
    sizes = [topic.size_bytes for topic in chosen if topic.size_bytes is not None]
    partitions = sum(topic.partitions for topic in chosen)
    return CountedTopics(len(chosen), len(rows), partitions, sum(sizes), len(chosen) - len(sizes))


def choose_topics(
    rows: Mapping[str, TopicSize],
    topics: Sequence[str],
    pattern: str,
    excluded: str,
    *,
    internal: bool = True,
    typed_by: int | None = None,
) -> list[TopicSize]:
    """Return the topics chosen out of ``rows``, by name. Parameters and errors as of ``count_choice``."""
    skipped = [] if internal else [topic.name for topic in rows.values() if topic.internal]
    unknown = [name for name in topics if name not in rows]
    if unknown:
        raise BadChoice("topics", coded(PlanErrorCode.TOPICS_UNKNOWN, topics=first_names(unknown, 8)))
    names = _choose_topics(topics, pattern, excluded, rows, skipped, typed_by)
    if rows and not names:
        left = _choose_topics(topics, pattern, "", rows, skipped, typed_by) if excluded else []
        if left:
            code = PlanErrorCode.ALL_TOPICS_EXCLUDED
            raise BadChoice("excluded", coded(code, topics=len(rows), pattern=excluded))
        raise BadChoice("pattern", coded(PlanErrorCode.NO_TOPIC_CHOSEN, topics=len(rows), pattern=pattern))
    return [rows[name] for name in names]


def _choose_topics(
    topics: Sequence[str],
    pattern: str,
    excluded: str,
    names: Iterable[str],
    skipped: Sequence[str],
    typed_by: int | None,
) -> list[str]:
    if not pattern and not excluded:
        return sorted(set(topics) or {*names}.difference(skipped))
    for field, one in (("pattern", pattern), ("excluded", excluded)):
        if len(one) > LONGEST_PATTERN:
            raise BadChoice(field, coded(ReassignmentErrorCode.PATTERN_TOO_LONG, length=len(one), most=LONGEST_PATTERN))
    match_request = {"topics": list(topics), "pattern": pattern, "excluded": excluded, "names": list(names)}
    match_request["skipped"] = list(skipped)
    field = "pattern" if pattern else "excluded"
    answer = _run_match(json.dumps(match_request).encode(), field, typed_by)
    if answer is None:
        raise BadChoice(field, coded(ReassignmentErrorCode.PATTERN_TOO_SLOW, seconds=CPU_S))
    found = json.loads(answer)
    if "fault" in found:
        field = "pattern" if found["pattern"] == pattern else "excluded"
        raise BadChoice(field, coded(PlanErrorCode.PATTERN_WRONG, pattern=found["pattern"], fault=found["fault"]))
    names_chosen: list[str] = found["chosen"]
    return names_chosen


def _run_match(match_request: bytes, field: str, typed_by: int | None) -> bytes | None:
    """The answer of ``kafkadash.planning.topic_match``; None where the system ended it. Raises TooManyAtOnce."""
    busy = TooManyAtOnce(field, coded(ReassignmentErrorCode.PATTERNS_BUSY))
    if typed_by is not None:
        _end_child_of(typed_by)
    if not _places.acquire(timeout=_WAIT_S if typed_by is None else _PLACE_S):
        raise busy
    answer = b""
    try:
        with _start_child() as child:
            if typed_by is not None:
                _end_child_of(typed_by, newer=child)
            try:
                answer, _ = child.communicate(match_request, timeout=_WAIT_S)
            except subprocess.TimeoutExpired:
                child.kill()
        given_up = typed_by is not None and not _forget(typed_by, child)
        if child.returncode == 0:
            return answer
        if given_up:
            raise busy
        return None
    finally:
        _places.release()


def _end_child_of(person: int, newer: subprocess.Popen[bytes] | None = None) -> None:
    """Ends what matches for this person; ``newer`` takes its place."""
    with _lock:
        older = _children.pop(person, None)
        if older is not None:
            older.kill()
        if newer is not None:
            _children[person] = newer


def _forget(person: int, child: subprocess.Popen[bytes]) -> bool:
    """Return False where a newer one has its place."""
    with _lock:
        own = _children.get(person) is child
        if own:
            del _children[person]
        return own


def _start_child() -> subprocess.Popen[bytes]:
    environment = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL", "TZ") if name in os.environ}
    return subprocess.Popen(
        [sys.executable, "-m", "kafkadash.planning.topic_match"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=settings.BASE_DIR,
        env={**environment, "PYTHONPATH": str(settings.BASE_DIR)},
    )
