"""A group is what its worst partition makes of it, said in a sentence."""

from __future__ import annotations

from itertools import permutations

import pytest

from kafkadash.domain.lag import LagState
from kafkadash.domain.lag_group import STATES, GroupLag, PartitionLag, Unjudged, group_lag, partition_lag
from kafkadash.domain.lag_look import Look
from kafkadash.domain.lag_time import How, TimeLag
from kafkadash.domain.lag_trend import Drain, Trend
from kafkadash.domain.lag_words import drain_words, group_verdict, not_read, partition_word, time_lag_words
from kafkadash.domain.status import State

NOW = 1_795_000_000.0
TEN = 10
STILL = "Its last 10 samples hold the same offset, and the lag was never zero in them."


def seen(
    number: int,
    committed: list[int | None],
    ends: list[int | None],
    *,
    members: bool | None = True,
    start: int | None = 0,
    allowed: int = 0,
    moved: float | None = 660,
    member: str | None = None,
) -> PartitionLag:
    """``moved``: how many seconds ago the offset was seen to move."""
    looks = [Look(NOW - 10 * (len(ends) - 1 - n), c, e) for n, (c, e) in enumerate(zip(committed, ends, strict=True))]
    return partition_lag(
        "orders.paid",
        number,
        looks,
        has_members=members,
        start=start,
        allowed=allowed,
        moved_at=None if moved is None else NOW - moved,
        seen_since=NOW - 900,
        member=member,
    )


def stalled(number: int = 14, **more: object) -> PartitionLag:
    return seen(number, [91_204_118] * TEN, [91_245_988 - 640 * (9 - n) for n in range(TEN)], **more)  # type: ignore[arg-type]


def well(number: int, lag: int = 0) -> PartitionLag:
    ends: list[int | None] = [1000 + 620 * n for n in range(TEN)]
    return seen(number, [(end or 0) - (lag if n == 9 else 0) for n, end in enumerate(ends)], ends)


def collecting(number: int = 31) -> PartitionLag:
    return seen(number, [100, 200, 300, 400], [150, 250, 350, 453])


def uncommitted(number: int = 47) -> PartitionLag:
    return seen(number, [None] * TEN, [90] * TEN)


def said(*partitions: PartitionLag, members: int | None = 6) -> tuple[str, str]:
    verdict = group_verdict(group_lag(partitions, members=members), NOW)
    return verdict.sentence, verdict.detail


def test_a_stall_is_said_as_on_the_mockup() -> None:
    partitions = [stalled(member="invoice-3"), *(well(n, lag=n) for n in range(45)), collecting(), uncommitted()]
    group = group_lag(partitions, members=6)
    verdict = group_verdict(group, NOW)
    assert verdict.state is State.WARNING
    assert verdict.word == "Stall"
    assert verdict.sentence == "orders.paid-14 has committed nothing for 11 min while 41,870 records wait."
    assert verdict.detail == (
        "Its last 10 samples hold the same offset, and the lag was never zero in them. "
        "Member invoice-3 still sends heartbeats, so the group will not rebalance by itself. "
        "45 partitions are OK; 2 cannot be judged yet."
    )
    assert (group.state, group.partitions, group.lag, group.lag_unknown) == (LagState.ERR, 48, 41_870 + 990 + 53, 1)
    assert group.failing == 1


def test_several_stalls_name_the_largest_and_count_the_others() -> None:
    small = seen(2, [5] * TEN, [9] * TEN)
    sentence, detail = said(small, stalled(), small, well(1))
    assert sentence.startswith("orders.paid-14 ")
    assert detail.endswith("2 more partitions stall; 1 is OK.")


@pytest.mark.parametrize(
    ("partition", "members", "sentence", "detail"),
    [
        (
            stalled(members=False),
            0,
            "The group has no members while 41,870 records wait in orders.paid-14.",
            f"Nothing was committed for 11 min. {STILL}",
        ),
        (
            stalled(members=None, moved=None),
            None,
            "orders.paid-14 has committed nothing for at least 15 min while 41,870 records wait.",
            f"{STILL} Whether the group has members is not known.",
        ),
        (
            stalled(member=""),
            6,
            "orders.paid-14 has committed nothing for 11 min while 41,870 records wait.",
            f"{STILL} The group has members, but none of them is assigned to it.",
        ),
        (
            stalled(allowed=1000),
            6,
            "orders.paid-14 has committed nothing for 11 min while 41,870 records wait.",
            "Its last 10 samples hold the same offset, and the lag was never down to the 1,000 that are allowed.",
        ),
        (
            stalled(start=91_245_988),
            6,
            "orders.paid-14 has committed nothing for 11 min, and the 41,870 records after its offset are deleted.",
            f"{STILL} Up to 41,870 records of orders.paid-14 were deleted before they were committed.",
        ),
        (
            stalled(start=91_204_119),
            6,
            "orders.paid-14 has committed nothing for 11 min while 41,869 records wait.",
            f"{STILL} 1 record of orders.paid-14 was deleted before it was committed.",
        ),
        (
            seen(3, [*[5200] * 9, 4000], [5300] * TEN),
            6,
            "orders.paid-3 was set back by 1,200 records, and 1,300 records wait.",
            "It has not come up to where it was in its last samples.",
        ),
        (
            seen(3, [10 * n for n in range(TEN)], [100 + 650 * n for n in range(TEN)]),
            6,
            "orders.paid-3 falls behind: 5,860 records wait, 64 more every second.",
            "Its lag never got smaller over its last 10 samples.",
        ),
        (
            seen(3, [10 * n for n in range(TEN)], [100 + 12 * n for n in range(TEN)]),
            6,
            "orders.paid-3 falls behind: 118 records wait, 0.2 more every second.",
            "Its lag never got smaller over its last 10 samples.",
        ),
        (
            seen(3, [10 * n for n in range(TEN)], [1 + 10 * n for n in range(TEN)]),
            6,
            "orders.paid-3 does not catch up: 1 record waits.",
            "Its lag never got smaller over its last 10 samples.",
        ),
        (well(3), 6, "The group has read all that was written.", ""),
        (well(3, lag=31), 6, "The group keeps up: 31 records wait.", ""),
        (collecting(), 6, "Cannot tell how the group does: 4 of 10 samples are collected.", ""),
        (uncommitted(), 6, "Cannot tell how the group does: it has committed nothing yet.", ""),
        (
            seen(3, [5] * TEN, [*[9] * 9, None]),
            6,
            "Cannot tell how the group does: the log ends of what it reads are not known.",
            "",
        ),
        (
            seen(3, [5200] * TEN, [5000] * TEN),
            6,
            "Cannot tell how the group does: its commits lie beyond the end of the log.",
            "1 partition has a commit beyond the end of the log: the topic was truncated, or deleted and made anew.",
        ),
    ],
)
def test_each_state_has_its_sentence(partition: PartitionLag, members: int | None, sentence: str, detail: str) -> None:
    assert said(partition, members=members) == (sentence, detail)


def test_a_group_that_keeps_up_says_where_most_of_it_waits() -> None:
    assert said(well(1, lag=31), well(2, lag=7), uncommitted()) == (
        "The group keeps up: 38 records wait in 2 partitions.",
        "Most of them, 31, in orders.paid-1. 1 partition cannot be judged yet.",
    )


def test_a_group_without_partitions_has_committed_nothing() -> None:
    group = group_lag([], members=0)
    assert (group.state, group.lag, group.worst) == (LagState.UNKNOWN, None, None)
    assert group_verdict(group, NOW).state is State.UNKNOWN


def test_what_was_not_read_lately_is_never_well() -> None:
    assert not_read(None).state is not_read(300.0).state is State.UNKNOWN
    assert not_read(300.0, "No broker answered.") == not_read(300.0, "No broker answered.")
    assert not_read(300.0).sentence == "Cannot tell how the group does: it was last read 5 min ago."


def of_state(state: LagState, number: int) -> PartitionLag:
    return PartitionLag("t", number, state, [Look(NOW, 5, 9)])


@pytest.mark.parametrize(
    ("states", "group"),
    [
        ([LagState.OK, LagState.STOP, LagState.WARN], LagState.ERR),
        ([LagState.OK, LagState.STALL], LagState.ERR),
        ([LagState.REWIND, LagState.UNKNOWN], LagState.ERR),
        ([LagState.ERR, LagState.OK], LagState.ERR),
        ([LagState.WARN, LagState.OK, LagState.UNKNOWN], LagState.WARN),
        ([LagState.OK, LagState.UNKNOWN], LagState.OK),
        ([LagState.UNKNOWN, LagState.UNKNOWN], LagState.UNKNOWN),
    ],
)
def test_the_worst_partition_makes_the_group(states: list[LagState], group: LagState) -> None:
    for order in permutations(enumerate(states)):
        rolled = group_lag([of_state(state, n) for n, state in order], members=1)
        assert rolled.state == group
        assert rolled.worst is not None
        assert STATES[rolled.worst.state] is STATES[rolled.state]
        assert sum(rolled.counts.values()) == rolled.partitions == len(states)


def test_every_state_has_a_colour_and_none_is_critical() -> None:
    assert set(STATES) == set(LagState)
    assert State.CRITICAL not in STATES.values()
    assert STATES[LagState.UNKNOWN] is State.UNKNOWN


@pytest.mark.parametrize(
    ("partition", "word", "why"),
    [
        (collecting(), "Collecting 4/10", Unjudged.COLLECTING),
        (uncommitted(), "No commit yet", Unjudged.NO_COMMIT),
        (seen(1, [5] * TEN, [*[9] * 9, None]), "Log end not known", Unjudged.NO_END),
        (seen(1, [10] * TEN, [9] * TEN), "Beyond the log end", Unjudged.BEYOND),
        (seen(1, [*range(TEN)], [*[None] * 9, 20]), "Unknown", Unjudged.NO_TREND),
        (stalled(), "Stall", Unjudged.JUDGED),
        (well(1), "OK", Unjudged.JUDGED),
    ],
)
def test_a_mark_says_why_nothing_is_judged(partition: PartitionLag, word: str, why: Unjudged) -> None:
    assert (partition_word(partition), partition.unjudged) == (word, why)


def test_figures_of_a_partition() -> None:
    stall = stalled(start=91_204_120)
    assert (stall.name, stall.lag, stall.lost, stall.waiting, stall.beyond) == ("orders.paid-14", 41_870, 2, 41_868, 0)
    assert stall.time_lag is not None
    assert stall.time_lag.how is How.ESTIMATED
    assert 640 < stall.time_lag.seconds < 660
    assert (stall.trend.read, stall.trend.written, stall.trend.drain) == (0, 64, Drain.NEVER)
    none = uncommitted()
    assert (none.lag, none.lost, none.waiting, none.time_lag, none.trend.read) == (None,) * 5


def test_cells_have_units_and_say_what_is_an_estimate() -> None:
    lags = [None, TimeLag(0), TimeLag(0.84), TimeLag(640.9), TimeLag(640.9, How.ESTIMATED), TimeLag(90, How.AT_LEAST)]
    words = ["unknown", "0 s", "0.8 s", "10 min 40 s", "about 10 min 40 s", "over 1 min 30 s"]
    assert [time_lag_words(lag) for lag in lags] == words
    trends = [Trend(5, 5, drain) for drain in (Drain.NEVER, Drain.KEEPS_UP, Drain.EMPTY, Drain.UNKNOWN)]
    assert [drain_words(each) for each in trends] == ["never", "keeps up", "nothing waits", ""]
    assert drain_words(Trend(9, 5, Drain.DRAINS, 754.0)) == "12 min 34 s"


def test_the_group_sums_only_what_is_known() -> None:
    group: GroupLag = group_lag([uncommitted(1), uncommitted(2)], members=1)
    assert (group.lag, group.lag_unknown, group.state) == (None, 2, LagState.UNKNOWN)
