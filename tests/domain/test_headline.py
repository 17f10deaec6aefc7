"""The sentence at the top: what is worst in a cluster, and on the board of all of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kafkadash.domain.finding_kinds import FindingKind
from kafkadash.domain.headline import Point, board_headline, headline
from kafkadash.domain.status import State


class TestHeadline:
    def test_a_critical_one_says_that_nobody_has_it(self) -> None:
        point = Point(FindingKind.OFFLINE, State.CRITICAL, "has 2 partitions without a leader")
        less = Point(FindingKind.DISK_FULL, State.WARNING, "has a full disk", owner="ann")
        assert headline("demo", State.CRITICAL, [point, less]).endswith("without a leader, and nobody has it.")
        taken = replace(point, owner="ann")
        assert headline("demo", State.CRITICAL, [taken, less]) == "demo has 2 partitions without a leader."
        assert headline("demo", State.WARNING, [less]) == "demo has a full disk."

    @pytest.mark.parametrize(
        ("clusters", "said"),
        [
            ([], "No cluster is registered yet."),
            ([("demo", State.OK)], "demo is so."),
            ([("a", State.OK), ("b", State.OK), ("c", State.OK)], "All 3 clusters are OK."),
            ([("off", State.MAINTENANCE), ("a", State.OK), ("b", State.OK)], "2 clusters are OK, 1 not watched."),
            ([("off", State.MAINTENANCE)], "off is so."),
            ([("x", State.MAINTENANCE), ("y", State.MAINTENANCE)], "None of 2 clusters is watched."),
            ([("demo", State.CRITICAL), ("a", State.OK)], "demo is so."),
        ],
    )
    def test_the_board_says_the_worst_that_is_true(self, clusters: list[tuple[str, State]], said: str) -> None:
        assert board_headline([(name, state, f"{name} is so.") for name, state in clusters]) == said
