"""How far back a batch reads, by what manifests say."""

from __future__ import annotations

from pathlib import Path
from unittest import mock

from kafkadash.domain.lag import WINDOW
from kafkadash.domain.segments import SegmentKind
from kafkadash.pipeline.flushes import manifests, minute_of, take_in
from kafkadash.pipeline.lake import EVER, Lake, Span
from kafkadash.pipeline.snapshots import Snapshots
from kafkadash.pipeline.store import open_store
from tests.pipeline.making import Maker


def test_a_window_of_groups__reaches_back_as_far_as_that_of_a_worker_may(tmp_path: Path) -> None:
    """A sample continues one of two intervals before: between ten of them, nine refreshes may lack the group."""
    maker = Maker(tmp_path / "segments", groups=1, partitions=1, every=60)
    maker.flushes(30)
    store = open_store(tmp_path.as_uri())
    lake = Lake(mock.Mock(), store, "q")
    lake.write(0, take_in(store, manifests(store)))
    last = minute_of(maker.at)
    found = Snapshots(lake).before([Span(last, last)], EVER)
    reach = {(kind, span.cluster): last - span.first for kind in SegmentKind for span in found[kind]}
    assert {cluster: reach[SegmentKind.GROUP_OFFSET, cluster] for cluster in ("east", "west")} == {
        "east": 20,
        "west": 20,
    }
    assert reach[SegmentKind.GROUP_OFFSET, "east"] >= 2 * (WINDOW - 1)
    assert reach[SegmentKind.REPLICA, "east"] == 12
