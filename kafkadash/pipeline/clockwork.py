"""What is done by the clock: rollups of hours and days that are over, and forgetting.

An hour is rolled up from all that was observed in it, a day from the sketches of its hours. When something of an hour
comes late, the hour and its day are done again, under another name, so that a reader takes them in again: the name of
the query has the last batch in it that brought something. What was done stands in ``lake/done.json``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from kafkadash.domain.pipeline_results import RESULTS, Grain, ResultKind
from kafkadash.domain.segments import SegmentKind as Facts
from kafkadash.pipeline import results
from kafkadash.pipeline.lake import LAKE, MINUTES_OF_HOUR, Lake, Span, hour_folder
from kafkadash.pipeline.results import Name
from kafkadash.pipeline.schemas import schema_of
from kafkadash.pipeline.work import Frames

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SETTLES = timedelta(minutes=5)
"""So long after its end an hour is waited for; what comes later makes it anew."""

RAW_KEPT = timedelta(days=7)
_HOURS = f"{LAKE}/hours"
_DONE = f"{LAKE}/done.json"
_EVER = 10**15
_HOURS_OF_DAY = 24
_DAY = timedelta(days=1)
_DONE_KEPT_HOURS = 24 * 12


def coarse_jobs() -> Mapping[ResultKind, tuple[frozenset[Facts], Callable[[Frames, Grain], DataFrame]]]:
    """Rollups of any grain: the facts that each reads, and the job."""
    from kafkadash.pipeline.jobs import rollup

    offsets, replicas = frozenset({Facts.GROUP_OFFSET}), frozenset({Facts.REPLICA})
    return {
        ResultKind.LAG_ROLLUP: (offsets, lambda of, grain: rollup.lag_rollup(of[Facts.GROUP_OFFSET], grain)),
        ResultKind.TOPIC_ROLLUP: (
            offsets | replicas | {Facts.MANIFEST},
            lambda of, grain: rollup.topic_rollup(of[Facts.GROUP_OFFSET], of[Facts.REPLICA], of[Facts.MANIFEST], grain),
        ),
        ResultKind.CLUSTER_ROLLUP: (offsets, lambda of, grain: rollup.cluster_rollup(of[Facts.GROUP_OFFSET], grain)),
        ResultKind.BROKER_ROLLUP: (replicas, lambda of, grain: rollup.broker_rollup(of[Facts.REPLICA], grain)),
    }


@dataclass
class Clockwork:
    """Of one query; ``stopping``: asked between two pieces of work. ``say`` is told of each."""

    lake: Lake
    say: Callable[[str], None]
    stopping: Callable[[], bool] = lambda: False
    _done: dict[str, list[str]] | None = field(default=None, init=False)

    def turn(self, now: datetime) -> None:
        """Everything that is due. Raises what Spark and the store raise; what was done by then is not done again."""
        for hour in self._hours_due(now):
            if self.stopping():
                return
            self._hour(hour)
        for day in sorted(self._days_due(now)):
            if self.stopping():
                return
            self._day(day)
        self._forget(now)

    # --- hours ---

    def _hours_due(self, now: datetime) -> Iterator[int]:
        known = self._hours_known()
        for number, (hour, last) in enumerate(sorted(known.items())):
            if _begin(hour + 1) + SETTLES > now:
                continue
            done = self._read_done().get(f"hour {hour}")
            own = [self.lake.query, str(last)]
            # The first that is kept may have lost a part already; what was made of the whole of it is not replaced.
            cut = number == 0 and done is not None and done[0] != self.lake.query
            if done != own and not cut:
                yield hour

    def _hours_known(self) -> dict[int, int]:
        """Hour → the last batch that brought something of it."""
        found = {}
        for date in self.lake.store.names(self.lake.folder):
            for hour in self.lake.store.names(f"{self.lake.folder}/{date}"):
                at = datetime.fromisoformat(f"{date}T{hour}:00:00+00:00")
                batches = [
                    name for name in self.lake.store.names(f"{self.lake.folder}/{date}/{hour}") if name[0] != "_"
                ]
                if batches:
                    found[int(at.timestamp()) // 3600] = int(batches[-1].removesuffix(".json"))
        return found

    def _hour(self, hour: int) -> None:
        last = self._hours_known()[hour]
        span = [Span(hour * MINUTES_OF_HOUR, hour * MINUTES_OF_HOUR + MINUTES_OF_HOUR - 1)]
        have = {part.kind for part in self.lake.parts([hour], _EVER)}
        name = Name(f"hourly-{self.lake.query[:8]}-{last}", hour * 3600)
        kinds = []
        for kind, (reads, job) in coarse_jobs().items():
            if (reads - {Facts.MANIFEST}).isdisjoint(have):
                continue
            results.write_rows(
                self.lake.store,
                name,
                kind,
                job({each: self.lake.rows(each, span, _EVER) for each in reads}, Grain.HOUR),
            )
            self._keep(name, kind, hour)
            kinds.append(kind)
        rows = results.write_marker(self.lake.store, name, kinds, (), ())
        self._note(f"hour {hour}", [self.lake.query, str(last)])
        self.say(f"hour {_begin(hour):%Y-%m-%d %H}:00: {sum(rows.values())} rows")

    def _keep(self, name: Name, kind: ResultKind, hour: int) -> None:
        """For its day."""
        store = self.lake.store
        folder = f"{_HOURS}/{kind}/{hour_folder(hour)}"
        store.remove(folder)
        for number, file in enumerate(sorted(store.sizes(f"{results.FOLDER}/{kind}/{name}"))):
            if file.endswith(".parquet"):
                store.write(f"{folder}/{number}.parquet", store.read(file) or b"")

    # --- days ---

    def _days_due(self, now: datetime) -> set[str]:
        """Days of which an hour was done since."""
        done = self._read_done()
        hours = [int(name.removeprefix("hour ")) for name in done if name.startswith("hour ")]
        days = {_day(hour) for hour in hours if now - RAW_KEPT <= _begin_of(_day(hour)) <= now - SETTLES - _DAY}
        return {day for day in days if done.get(f"day {day}") != self._version(day)}

    def _version(self, day: str) -> list[str]:
        done = self._read_done()
        first = int(datetime.fromisoformat(f"{day}T00:00:00+00:00").timestamp()) // 3600
        return [
            "/".join(done[f"hour {hour}"]) for hour in range(first, first + _HOURS_OF_DAY) if f"hour {hour}" in done
        ]

    def _day(self, day: str) -> None:
        from kafkadash.pipeline.jobs import rollup

        store, version = self.lake.store, self._version(day)
        newest = max(int(each.rpartition("/")[2]) for each in version)
        name = Name(f"daily-{self.lake.query[:8]}-{newest}-{len(version)}", int(_begin_of(day).timestamp()))
        kinds = []
        for kind in coarse_jobs():
            files = [file for file in store.sizes(f"{_HOURS}/{kind}/{day}") if file.endswith(".parquet")]
            if not files:
                continue
            schema = schema_of(RESULTS[kind].columns)
            hours = self.lake.spark.read.schema(schema).parquet(*(store.address(file) for file in sorted(files)))
            results.write_rows(store, name, kind, rollup.coarser(hours, kind, Grain.DAY))
            kinds.append(kind)
        rows = results.write_marker(store, name, kinds, (), ())
        self._note(f"day {day}", version)
        self.say(f"day {day}: {sum(rows.values())} rows")

    # --- forgetting ---

    def _forget(self, now: datetime) -> None:
        """Names of files that are gone, hours whose day is long over, lakes of queries that lost their checkpoint."""
        oldest = f"{now - RAW_KEPT - timedelta(days=1):%Y-%m-%d}"
        store = self.lake.store
        folders = [self.lake.folder, *(f"{_HOURS}/{kind}" for kind in store.names(_HOURS))]
        for folder in folders:
            for date in store.names(folder):
                if date < oldest:
                    store.remove(f"{folder}/{date}")
        for name in store.names(LAKE):
            if name not in (self.lake.query, "hours", "done.json") and not name.startswith(("_", "backfill-")):
                store.remove(f"{LAKE}/{name}")

    # --- what was done ---

    def _read_done(self) -> dict[str, list[str]]:
        if self._done is None:
            content = self.lake.store.read(_DONE)
            self._done = json.loads(content) if content else {}
        return self._done

    def _note(self, what: str, how: Sequence[str]) -> None:
        done = self._read_done()
        done[what] = list(how)
        newest = max(_hour_of(name) for name in done)
        self._done = {name: how for name, how in done.items() if newest - _hour_of(name) < _DONE_KEPT_HOURS}
        self.lake.store.write(_DONE, json.dumps(self._done, indent=0).encode())


def _hour_of(name: str) -> int:
    what, _, which = name.partition(" ")
    return int(which) if what == "hour" else int(_begin_of(which).timestamp()) // 3600


def _begin(hour: int) -> datetime:
    return datetime.fromtimestamp(hour * 3600, UTC)


def _day(hour: int) -> str:
    return f"{_begin(hour):%Y-%m-%d}"


def _begin_of(day: str) -> datetime:
    return datetime.fromisoformat(f"{day}T00:00:00+00:00")
