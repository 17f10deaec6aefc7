"""Parameters in the address of a timeline: span, kinds, and broker, topic or group."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

from django.http import QueryDict
from django.utils.dateparse import parse_date, parse_datetime

from kafkadash.clusters.models import Cluster
from kafkadash.core.errors import RequestErrorCode
from kafkadash.core.formatting import LARGEST_INT, read_whole_number
from kafkadash.core.listing import FilterChoice, ListQuery
from kafkadash.core.messages import message_text
from kafkadash.findings.models import Finding
from kafkadash.monitoring.groups.names import key_of_slug
from kafkadash.monitoring.models import GroupState
from kafkadash.timeline.entries import KIND_NAMES, EntryKind, TimelineScope, TimeSpan
from kafkadash.timeline.errors import TimelineErrorCode

DEFAULT_PERIOD = "24h"
PERIODS: Mapping[str, str] = {
    "15m": "15 minutes",
    "1h": "hour",
    "6h": "6 hours",
    "24h": "24 hours",
    "7d": "7 days",
    "30d": "30 days",
    "90d": "90 days",
}
_LENGTHS: Mapping[str, timedelta] = {
    "15m": timedelta(minutes=15),
    "1h": timedelta(hours=1),
    "6h": timedelta(hours=6),
    "24h": timedelta(hours=24),
    "7d": timedelta(days=7),
    "30d": timedelta(days=30),
    "90d": timedelta(days=90),
}
_SHORTEST = timedelta(seconds=1)
_EARLIEST, _LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)
"""Moments outside have no neighbours to compute a span with."""
BEFORE_FINDING = timedelta(minutes=15)


@dataclass
class TimelineQuery:
    """Parameters of the address. What cannot be read is left out and told in ``problems``."""

    query: QueryDict
    cluster: Cluster
    now: datetime
    span: TimeSpan = field(init=False)
    scope: TimelineScope = field(init=False)

    def __post_init__(self) -> None:
        self.listing = ListQuery(
            self.query,
            choices=[FilterChoice("period", "period", PERIODS)],
            texts=["from", "to", "broker", "finding"],
            exact=["topic", "group"],
            sorts={"at": ["at"]},
        )
        self.kinds = self._read_kinds()
        self.span = self._read_span()
        self.scope = self._read_scope()

    @property
    def problems(self) -> list[str]:
        return self.listing.problems

    @property
    def period(self) -> str:
        return self.listing.values["period"]

    def address(self, **changes: str) -> str:
        """Return the query string with some parameters changed, from the first page."""
        values = {name: value for name, value in {**self.listing.values, **changes}.items() if value}
        pairs = [*values.items(), *(("kind", kind.value) for kind in self.kinds)]
        return f"?{urlencode(pairs)}" if pairs else "?"

    def kind_address(self, kind: EntryKind | None) -> str:
        """Return the address that lists one kind more, or less if it is listed; None: all kinds."""
        kinds = [] if kind is None else [each for each in EntryKind if (each in self.kinds) is not (each is kind)]
        values = [(name, value) for name, value in self.listing.values.items() if value]
        return f"?{urlencode([*values, *(('kind', each.value) for each in kinds)])}"

    @property
    def without_subject(self) -> str:
        return self.address(broker="", topic="", group="")

    @property
    def permalink(self) -> str:
        """Return the address of exactly this span, whenever it is opened."""
        begin, end = (moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") for moment in self._whole_seconds())
        return self.address(period="", **{"from": begin, "to": end})

    def _whole_seconds(self) -> tuple[datetime, datetime]:
        begin, end = self.span.begin.replace(microsecond=0), self.span.end
        return begin, end if not end.microsecond else end.replace(microsecond=0) + timedelta(seconds=1)

    def _read_kinds(self) -> tuple[EntryKind, ...]:
        asked = dict.fromkeys(self.query.getlist("kind"))
        for unknown in [name for name in asked if name and name not in KIND_NAMES]:
            known = ", ".join(EntryKind)
            self.problems.append(
                message_text(RequestErrorCode.CHOICE_UNKNOWN, noun="kind", asked=unknown[:60], known=known)
            )
        return tuple(kind for kind in EntryKind if kind in asked)

    def _read_span(self) -> TimeSpan:
        begin, end = self._read_moment("from"), self._read_moment("to", is_end=True)
        values = self.listing.values
        if begin and end and end - begin < _SHORTEST:
            self.problems.append(message_text(TimelineErrorCode.SPAN_EMPTY))
            begin = end = None
            values["from"] = values["to"] = ""
        if begin or end:
            values["period"] = ""
            until = end or max(self.now, (begin or self.now) + _SHORTEST)
            return TimeSpan(begin or until - _LENGTHS[DEFAULT_PERIOD], until)
        values["period"] = values["period"] or DEFAULT_PERIOD
        return TimeSpan(self.now - _LENGTHS[values["period"]], self.now)

    def _read_moment(self, name: str, *, is_end: bool = False) -> datetime | None:
        """Return a day or a moment in UTC; a day as the end is meant whole."""
        text = self.listing.values[name]
        if not text:
            return None
        moment = None
        with suppress(ValueError, OverflowError):  # told below, with what else is no time
            if (day := parse_date(text)) is not None:
                start = datetime(day.year, day.month, day.day, tzinfo=UTC)
                moment = start + timedelta(days=1) if is_end else start
            elif (typed := parse_datetime(text)) is not None:
                moment = typed.astimezone(UTC) if typed.tzinfo else typed.replace(tzinfo=UTC)
        if moment is not None and _EARLIEST <= moment <= _LATEST:
            return moment
        self.problems.append(message_text(TimelineErrorCode.MOMENT_UNREADABLE, typed=text[:60]))
        self.listing.values[name] = ""
        return None

    def _read_scope(self) -> TimelineScope:
        values = self.listing.values
        broker = read_whole_number(values["broker"], LARGEST_INT) if values["broker"] else None
        if values["broker"] and broker is None:
            self.problems.append(message_text(TimelineErrorCode.BROKER_UNREADABLE, typed=values["broker"][:60]))
            values["broker"] = ""
        key = key_of_slug(values["group"]) if values["group"] else ""
        group = GroupState.objects.filter(cluster=self.cluster, key=key).first() if key else None
        name = group.name if group else values["group"]
        kinds = frozenset(self.kinds or EntryKind)
        return TimelineScope(
            self.cluster.pk, self.cluster.slug, kinds, broker, values["topic"], name if key else "", key
        )


def find_span_before(finding: Finding) -> TimeSpan:
    """Return the 15 minutes before a finding, up to the reading that showed it first."""
    begun = finding.since or finding.first_seen_at
    shown = finding.first_seen_at if finding.first_seen_at - begun <= BEFORE_FINDING else begun
    # The reading that showed the finding may show its cause as well.
    return TimeSpan((begun - BEFORE_FINDING).replace(microsecond=0), shown.replace(microsecond=0) + _SHORTEST)


def address_before(finding: Finding) -> str:
    """Return the query string of what changed in the 15 minutes before a finding."""
    span = find_span_before(finding)
    begin, end = (moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") for moment in (span.begin, span.end))
    return f"?{urlencode({'from': begin, 'to': end, 'finding': finding.public_id})}"
