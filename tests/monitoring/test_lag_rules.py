"""The state of a consumer on a partition: Burrow's figures, polled windows, and what holds for every window.

A group is what its worst partition makes of it, said in a sentence.

Time lag: read off the line of log ends over time, estimated before it, never from anybody else's clock.

Rates over a window of looks, and when nothing will be left.

Which rule decides how much lag a group may have, and that asking takes no time that patterns could be made for.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from fnmatch import fnmatchcase
from itertools import pairwise, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkadash.clusters.allowed_lag import AllowedLags, LagAllowance, allowed_lags
from kafkadash.core.status import HealthState
from kafkadash.monitoring.groups.pages import HEAT_ROWS, lag_heatmap
from kafkadash.monitoring.groups.rules import (
    STATES,
    WINDOW,
    EndPoint,
    GroupLag,
    LagBasis,
    LagDrain,
    LagSample,
    LagState,
    LagTrend,
    OffsetSample,
    PartitionLag,
    TimeLag,
    UnjudgedLag,
    compress_points,
    compute_trend,
    count_lost_records,
    count_records_beyond,
    group_lag,
    judge_partition,
    judge_without_samples,
    lag_of,
    partition_lag,
    time_lag,
)
from kafkadash.monitoring.groups.wording import (
    WORDS,
    drain_words,
    group_verdict,
    partition_word,
    time_lag_words,
    unread_verdict,
)
from tests.monitoring.lag_cases import CASES, Case, Window, random_windows

pytestmark = pytest.mark.domain


def state_of(window: Window) -> LagState:
    return judge_partition(
        window.samples,
        lag=window.lag,
        ends=window.ends,
        now=window.now,
        has_members=window.has_members,
        allowed=window.allowed,
        minimum=window.minimum,
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.window.name)
def test_a_window_is_given_its_state(case: Case) -> None:
    assert state_of(case.window) == case.state


def test_the_cases_have_names_of_their_own_and_meet_every_state() -> None:
    assert len({case.window.name for case in CASES}) == len(CASES)
    assert {case.state for case in CASES} == set(LagState)


def test_random_windows_are_the_same_for_the_same_seed_and_meet_every_state() -> None:
    windows = list(random_windows(10_000))
    assert windows == list(random_windows(10_000))
    assert windows != list(random_windows(10_000, seed=10))
    met = Counter(state_of(window) for window in windows)
    assert min(met[state] for state in LagState) > 50, met
    assert any(None in (s.committed, s.lag) for w in windows for s in w.samples)


def test_a_window_of_one_sample_is_no_stop() -> None:
    """Trap 11: with a single commit there is no distance between first and last to be silent for longer than."""
    one = (LagSample(500, 100, 10.0),)
    assert judge_partition(one, lag=100, ends=(600,), now=9e9, has_members=False) is LagState.UNKNOWN


_OFFSETS = st.integers(0, 12) | st.integers(0, 2**62)
_SAMPLES = st.lists(
    st.builds(LagSample, st.none() | _OFFSETS, st.none() | _OFFSETS, st.none() | st.floats(0, 1000)), max_size=12
)
WINDOWS = st.builds(
    Window,
    st.just("any"),
    _SAMPLES.map(tuple),
    st.none() | _OFFSETS,
    st.lists(_OFFSETS, max_size=12).map(tuple),
    st.floats(0, 3000),
    st.sampled_from([True, False, None]),
    _OFFSETS,
    st.integers(1, 12),
)


@given(WINDOWS)
def test_too_few_commits_or_no_lag_judge_nothing(window: Window) -> None:
    known = sum(sample.committed is not None for sample in window.samples)
    if window.lag is None or known < window.minimum:
        assert state_of(window) is LagState.UNKNOWN
    elif window.lag <= window.allowed:
        assert state_of(window) is LagState.OK
    early = judge_without_samples(known, window.lag, window.allowed, window.minimum)
    assert early in (None, state_of(window))


@given(WINDOWS)
def test_time_alone_changes_nothing_where_no_commit_time_is_known(window: Window) -> None:
    polled = replace(window, samples=tuple(LagSample(s.committed, s.lag) for s in window.samples))
    assert state_of(polled) == state_of(replace(polled, now=window.now + 1e9))


@given(WINDOWS)
def test_members_only_name_a_standstill(window: Window) -> None:
    polled = replace(window, samples=tuple(LagSample(s.committed, s.lag) for s in window.samples))
    named = [state_of(replace(polled, has_members=has)) for has in (True, False, None)]
    assert named in ([LagState.STALL, LagState.STOP, LagState.ERR], [named[0]] * 3)
    assert named[0] is not LagState.STOP


@given(WINDOWS)
def test_a_rewind_is_a_fall_that_no_later_commit_makes_up_for(window: Window) -> None:
    """As the rule is written, pair by pair; the code compares the newest with the highest."""
    commits = [s.committed for s in window.samples if s.committed is not None]
    fell = any(
        commits[n] < commits[n - 1] and all(later < commits[n - 1] for later in commits[n:])
        for n in range(1, len(commits))
    )
    state = state_of(window)
    assert fell or state is not LagState.REWIND
    judged = window.lag is not None and len(commits) >= window.minimum and window.lag > window.allowed
    if judged and fell:
        assert state in (LagState.REWIND, LagState.STOP)


@given(WINDOWS, st.integers(0, 2**40))
def test_where_in_the_log_it_happens_makes_no_difference(window: Window, further: int) -> None:
    moved = replace(
        window,
        samples=tuple(
            s._replace(committed=None if s.committed is None else s.committed + further) for s in window.samples
        ),
        ends=tuple(end + further for end in window.ends),
    )
    assert state_of(moved) == state_of(window)


@given(WINDOWS, st.floats(-1e6, 1e6))
def test_another_time_zone_of_one_clock_makes_no_difference(window: Window, shift: float) -> None:
    """Commit times and ``now`` come from one clock: how wrong it is must not matter."""
    whole = round(shift)
    samples = tuple(
        s._replace(commit_at=None if s.commit_at is None else float(round(s.commit_at))) for s in window.samples
    )
    here = replace(window, samples=samples, now=float(round(window.now)))
    there = replace(
        here,
        samples=tuple(s._replace(commit_at=None if s.commit_at is None else s.commit_at + whole) for s in samples),
        now=here.now + whole,
    )
    assert state_of(here) == state_of(there)


def test_a_whole_window_is_ten_samples() -> None:
    assert WINDOW == 10


NOW = 1_795_000_000.0
TEN = 10
STILL = "The last 10 samples hold the same offset; the lag never reached 0."


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
    looks = [
        OffsetSample(NOW - 10 * (len(ends) - 1 - n), c, e) for n, (c, e) in enumerate(zip(committed, ends, strict=True))
    ]
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
    assert verdict.state is HealthState.WARNING
    assert verdict.word == WORDS[LagState.STALL]
    assert verdict.sentence == "orders.paid-14: no commits for 11 min, lag 41,870 records."
    assert verdict.detail == (
        f"{STILL} Member invoice-3 still sends heartbeats, so the group does not rebalance. "
        "Other partitions: 45 OK, 2 not evaluated yet."
    )
    assert (group.state, group.partitions, group.lag, group.lag_unknown) == (LagState.ERR, 48, 41_870 + 990 + 53, 1)
    assert group.failing == 1


def test_several_stalls_name_the_largest_and_count_the_others() -> None:
    small = seen(2, [5] * TEN, [9] * TEN)
    sentence, detail = said(small, stalled(), small, well(1))
    assert sentence.startswith("orders.paid-14: ")
    assert detail.endswith("Other partitions: 2 stalled, 1 OK.")


@pytest.mark.parametrize(
    ("partition", "members", "sentence", "detail"),
    [
        (
            stalled(members=False),
            0,
            "The group has no members; lag 41,870 records in orders.paid-14.",
            f"No commits for 11 min. {STILL}",
        ),
        (
            stalled(members=None, moved=None),
            None,
            "orders.paid-14: no commits for at least 15 min, lag 41,870 records.",
            f"{STILL} The members of the group are unknown.",
        ),
        (
            stalled(member=""),
            6,
            "orders.paid-14: no commits for 11 min, lag 41,870 records.",
            f"{STILL} The group has members, but no member is assigned to this partition.",
        ),
        (
            stalled(allowed=1000),
            6,
            "orders.paid-14: no commits for 11 min, lag 41,870 records.",
            "The last 10 samples hold the same offset; the lag never dropped to the threshold of 1,000.",
        ),
        (
            stalled(start=91_245_988),
            6,
            "orders.paid-14: no commits for 11 min, the next 41,870 records are deleted.",
            f"{STILL} Up to 41,870 records of orders.paid-14 were deleted before they were committed.",
        ),
        (
            stalled(start=91_204_119),
            6,
            "orders.paid-14: no commits for 11 min, lag 41,869 records.",
            f"{STILL} 1 record of orders.paid-14 was deleted before it was committed.",
        ),
        (
            seen(3, [*[5200] * 9, 4000], [5300] * TEN),
            6,
            "orders.paid-3: offset moved backwards by 1,200 records, lag 1,300 records.",
            "The offset is still below its earlier value.",
        ),
        (
            seen(3, [10 * n for n in range(TEN)], [100 + 650 * n for n in range(TEN)]),
            6,
            "orders.paid-3 is falling behind: lag 5,860 records, growing by 64 records/s.",
            "The lag never decreased over the last 10 samples.",
        ),
        (
            seen(3, [10 * n for n in range(TEN)], [100 + 12 * n for n in range(TEN)]),
            6,
            "orders.paid-3 is falling behind: lag 118 records, growing by 0.2 records/s.",
            "The lag never decreased over the last 10 samples.",
        ),
        (
            seen(3, [10 * n for n in range(TEN)], [1 + 10 * n for n in range(TEN)]),
            6,
            "orders.paid-3 is not catching up: lag 1 record.",
            "The lag never decreased over the last 10 samples.",
        ),
        (well(3), 6, "The group has no lag.", ""),
        (well(3, lag=31), 6, "The group keeps up: lag 31 records.", ""),
        (collecting(), 6, "Group state unknown: 4 of 10 samples collected.", ""),
        (uncommitted(), 6, "Group state unknown: no offsets committed yet.", ""),
        (
            seen(3, [5] * TEN, [*[9] * 9, None]),
            6,
            "Group state unknown: log end offsets are unknown.",
            "",
        ),
        (
            seen(3, [5200] * TEN, [5000] * TEN),
            6,
            "Group state unknown: committed offsets are past the log end.",
            "1 partition has a commit past the log end: the topic was truncated, or deleted and recreated.",
        ),
    ],
)
def test_each_state_has_its_sentence(partition: PartitionLag, members: int | None, sentence: str, detail: str) -> None:
    assert said(partition, members=members) == (sentence, detail)


def test_a_group_that_keeps_up_says_where_most_of_it_waits() -> None:
    assert said(well(1, lag=31), well(2, lag=7), uncommitted()) == (
        "The group keeps up: lag 38 records across 2 partitions.",
        "Highest lag: 31 in orders.paid-1. Other partitions: 1 not evaluated yet.",
    )


def test_a_group_without_partitions_has_committed_nothing() -> None:
    group = group_lag([], members=0)
    assert (group.state, group.lag, group.worst) == (LagState.UNKNOWN, None, None)
    assert group_verdict(group, NOW).state is HealthState.UNKNOWN


def test_what_was_not_read_lately_is_never_well() -> None:
    assert unread_verdict(None).state is unread_verdict(300.0).state is HealthState.UNKNOWN
    assert unread_verdict(300.0, "No broker answered.") == unread_verdict(300.0, "No broker answered.")
    assert unread_verdict(300.0).sentence == "Group state unknown: last read 5 min ago."


def of_state(state: LagState, number: int) -> PartitionLag:
    return PartitionLag("t", number, state, [OffsetSample(NOW, 5, 9)])


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
    assert HealthState.CRITICAL not in STATES.values()
    assert STATES[LagState.UNKNOWN] is HealthState.UNKNOWN


@pytest.mark.parametrize(
    ("partition", "word", "why"),
    [
        (collecting(), "Collecting 4/10", UnjudgedLag.COLLECTING),
        (uncommitted(), "No commits yet", UnjudgedLag.NO_COMMIT),
        (seen(1, [5] * TEN, [*[9] * 9, None]), "Log end unknown", UnjudgedLag.NO_END),
        (seen(1, [10] * TEN, [9] * TEN), "Commit past log end", UnjudgedLag.BEYOND),
        (seen(1, [*range(TEN)], [*[None] * 9, 20]), "Unknown", UnjudgedLag.NO_TREND),
        (stalled(), "Stalled", UnjudgedLag.JUDGED),
        (well(1), "OK", UnjudgedLag.JUDGED),
    ],
)
def test_a_mark_says_why_nothing_is_judged(partition: PartitionLag, word: str, why: UnjudgedLag) -> None:
    assert (partition_word(partition), partition.unjudged) == (word, why)


def test_figures_of_a_partition() -> None:
    stall = stalled(start=91_204_120)
    assert (stall.name, stall.lag, stall.lost, stall.waiting, stall.beyond) == ("orders.paid-14", 41_870, 2, 41_868, 0)
    assert stall.time_lag is not None
    assert stall.time_lag.how is LagBasis.ESTIMATED
    assert 640 < stall.time_lag.seconds < 660
    assert (stall.trend.read, stall.trend.written, stall.trend.drain) == (0, 64, LagDrain.NEVER)
    none = uncommitted()
    assert (none.lag, none.lost, none.waiting, none.time_lag, none.trend.read) == (None,) * 5


def test_cells_have_units_and_say_what_is_an_estimate() -> None:
    lags = [
        None,
        TimeLag(0),
        TimeLag(0.84),
        TimeLag(640.9),
        TimeLag(640.9, LagBasis.ESTIMATED),
        TimeLag(90, LagBasis.AT_LEAST),
    ]
    words = ["unknown", "0 s", "0.8 s", "10 min 40 s", "about 10 min 40 s", "over 1 min 30 s"]
    assert [time_lag_words(lag) for lag in lags] == words
    trends = [LagTrend(5, 5, drain) for drain in (LagDrain.NEVER, LagDrain.KEEPS_UP, LagDrain.EMPTY, LagDrain.UNKNOWN)]
    assert [drain_words(each) for each in trends] == ["never", "keeps up", "no lag", ""]
    assert drain_words(LagTrend(9, 5, LagDrain.DRAINS, 754.0)) == "12 min 34 s"


def test_the_group_sums_only_what_is_known() -> None:
    group: GroupLag = group_lag([uncommitted(1), uncommitted(2)], members=1)
    assert (group.lag, group.lag_unknown, group.state) == (None, 2, LagState.UNKNOWN)


def line(*points: tuple[float, int]) -> list[EndPoint]:
    return [EndPoint(at, end) for at, end in points]


RISING = line((0, 400), (10, 500), (20, 700), (30, 1000))


@pytest.mark.parametrize(
    ("committed", "seconds"),
    [
        (1000, 0),  # nothing waits
        (700, 10),  # the next record was written right after 20 s, as far as is known
        (850, 5),  # half-way between two looks
        (600, 15),
        (400, 30),
    ],
)
def test_between_two_looks_it_is_measured(committed: int, seconds: float) -> None:
    assert time_lag(committed, RISING) == TimeLag(seconds)


def test_before_the_first_look_the_line_goes_on_through_first_and_last() -> None:
    """600 records in 30 s: 200 records before the first look are 10 s more."""
    assert time_lag(200, RISING) == TimeLag(40, LagBasis.ESTIMATED)


def test_a_stretch_without_writes_is_waited_from_its_end_on() -> None:
    """The record at 500 came after 40 s, not when the end first was 500."""
    flat = line((0, 400), (10, 500), (20, 500), (30, 500), (40, 500), (50, 600))
    assert time_lag(500, flat) == TimeLag(10)
    assert time_lag(550, flat) == TimeLag(5)
    assert time_lag(450, flat) == TimeLag(45)
    assert compress_points(flat) == line((0, 400), (10, 500), (40, 500), (50, 600))


def test_nothing_written_while_it_was_watched_is_at_least_that_old() -> None:
    assert time_lag(90, line((0, 100), (10, 100), (60, 100))) == TimeLag(60, LagBasis.AT_LEAST)
    assert time_lag(100, line((0, 100), (10, 100), (60, 100))) == TimeLag(0)


@pytest.mark.parametrize(
    ("committed", "points"),
    [
        (None, RISING),  # no commit
        (1001, RISING),  # beyond the log end
        (10, []),
        (10, line((0, 20))),
        (10, line((0, 20), (0, 30))),  # one moment
        (10, line((0, 900), (10, 20))),  # made anew: only the last point is of this log
    ],
)
def test_what_cannot_be_known_is_not_said(committed: int | None, points: list[EndPoint]) -> None:
    assert time_lag(committed, points) is None


def test_points_of_a_log_that_was_made_anew_do_not_count() -> None:
    assert time_lag(50, line((0, 5000), (10, 6000), (20, 40), (30, 60), (40, 80))) == TimeLag(15)


def test_points_of_a_clock_that_was_set_back_do_not_count() -> None:
    assert time_lag(50, line((3600, 10), (3610, 30), (20, 40), (30, 60), (40, 80))) == TimeLag(15)


POINTS = st.lists(st.tuples(st.integers(1, 60), st.integers(0, 50)), min_size=2, max_size=12).map(
    lambda steps: [
        EndPoint(float(sum(s for s, _ in steps[:n])), 100 + sum(e for _, e in steps[:n]))
        for n in range(1, len(steps) + 1)
    ]
)


@given(POINTS, st.integers(-100_000, 100_000))
def test_another_clock_makes_no_lag(points: list[EndPoint], skew: int) -> None:
    """All times are of one clock, so an hour of difference to anybody else's changes nothing."""
    for committed in (points[0].end - 5, points[0].end, points[-1].end):
        assert time_lag(committed, points) == time_lag(committed, [EndPoint(p.at + skew, p.end) for p in points])


@given(POINTS)
def test_it_grows_with_what_waits_and_is_never_negative(points: list[EndPoint]) -> None:
    last = points[-1].end
    lags = [time_lag(committed, points) for committed in range(last, last - 60, -1)]
    seconds = [lag.seconds for lag in lags if lag is not None]
    assert len(seconds) == len(lags)
    assert seconds[0] == 0
    assert all(before <= after + 1e-9 for before, after in pairwise(seconds))


@given(POINTS)
def test_leaving_out_the_middle_of_a_stretch_changes_nothing(points: list[EndPoint]) -> None:
    kept = compress_points(points)
    assert kept[0] == points[0]
    assert kept[-1] == points[-1]
    for committed in range(points[0].end - 3, points[-1].end + 2):
        assert time_lag(committed, points) == time_lag(committed, kept)


def looks(committed: list[int | None], ends: list[int | None], step: float = 10.0) -> list[OffsetSample]:
    return [OffsetSample(1000 + step * n, c, e) for n, (c, e) in enumerate(zip(committed, ends, strict=True))]


def test_rates_are_per_second_and_the_net_drains() -> None:
    seen = compute_trend(looks([0, 1000, 2000], [9000, 9500, 10_000]), 8000)
    assert seen == LagTrend(100.0, 50.0, LagDrain.DRAINS, 160.0)
    assert seen.net == 50


@pytest.mark.parametrize(
    ("committed", "ends", "lag", "drain"),
    [
        ([500, 500], [600, 700], 200, LagDrain.NEVER),
        ([500, 500], [600, 600], 100, LagDrain.NEVER),  # net is zero
        ([0, 100], [5000, 5100], 5000, LagDrain.NEVER),
        ([0, 100], [50, 150], 50, LagDrain.KEEPS_UP),  # half of what is read between two looks
        ([0, 100], [100, 201], 101, LagDrain.NEVER),
        ([0, 100], [10, 100], 0, LagDrain.EMPTY),
        ([500], [600], 100, LagDrain.UNKNOWN),
        ([None, None], [600, 700], None, LagDrain.UNKNOWN),
        ([500, 510], [None, 700], 190, LagDrain.UNKNOWN),
        ([], [], None, LagDrain.UNKNOWN),
    ],
)
def test_what_becomes_of_it(
    committed: list[int | None], ends: list[int | None], lag: int | None, drain: LagDrain
) -> None:
    seen = compute_trend(looks(committed, ends), lag)
    assert seen.drain == drain
    assert seen.drain_s is None


def test_a_missing_look_is_no_zero() -> None:
    assert compute_trend(looks([0, None, 200], [500, 600, None]), 300)[:2] == (10.0, 10.0)


def test_an_offset_that_was_set_back_begins_its_rate_anew() -> None:
    assert compute_trend(looks([5000, 6000, 100, 200], [7000, 7000, 7000, 7000]), 6800).read == 10.0
    assert compute_trend(looks([5000, 6000, 100], [7000, 7000, 7000]), 6900).read is None


def test_looks_at_one_moment_have_no_rate() -> None:
    assert compute_trend(looks([1, 5], [9, 9], step=0.0), 4) == LagTrend(None, None, LagDrain.UNKNOWN)


@pytest.mark.parametrize(
    ("committed", "end", "lag", "over"),
    [(5, 9, 4, 0), (9, 9, 0, 0), (12, 9, None, 3), (None, 9, None, 0), (5, None, None, 0), (0, 0, 0, 0)],
)
def test_lag_is_known_or_not_and_never_negative(
    committed: int | None, end: int | None, lag: int | None, over: int
) -> None:
    assert lag_of(committed, end) == lag
    assert count_records_beyond(committed, end) == over


def test_what_was_deleted_before_it_was_committed_is_lost() -> None:
    assert [
        count_lost_records(100, 250),
        count_lost_records(250, 250),
        count_lost_records(300, 250),
        count_lost_records(None, 250),
        count_lost_records(100, None),
    ] == [150, 0, 0, None, None]


def decides(group: str, *patterns: str) -> str | None:
    """The pattern that decides, in whatever order the rules come."""
    found = {
        rule.pattern if (rule := AllowedLags([LagAllowance(p, 1) for p in order]).rule_of(group)) else None
        for order in (patterns, patterns[::-1], sorted(patterns))
    }
    assert len(found) == 1
    return found.pop()


@pytest.mark.parametrize(
    ("group", "patterns", "winner"),
    [
        ("nightly-billing", ("nightly-*", "nightly-billing", "*"), "nightly-billing"),
        ("nightly-billing", ("nightly-*", "*billing*", "*"), "nightly-*"),
        ("nightly-billing", ("*-billing", "nightly*"), "*-billing"),
        ("ab", ("a*", "a?", "??"), "a?"),  # as many own characters: the one with fewer *
        ("ab", ("a*", "*b"), "*b"),
        ("abc", ("a*", "a**"), "a*"),
        ("a*b", ("a*b", "a*bb", "a**b"), "a*b"),  # exactly its name, though it looks like a pattern
        ("axb", ("a*b", "*"), "a*b"),
        ("Nightly", ("nightly", "night*"), None),
        ("a.b", ("a.b*",), "a.b*"),
        ("axb", ("a.b*",), None),
        ("a[1]", ("a[1]*",), "a[1]*"),
        ("a\nb", ("a?b",), "a?b"),
        ("", ("*",), "*"),
        ("", ("?",), None),
        ("", (), None),
        ("x", (), None),
    ],
)
def test_the_most_special_rule_decides(group: str, patterns: tuple[str, ...], winner: str | None) -> None:
    assert decides(group, *patterns) == winner


def test_what_no_rule_fits_is_allowed_nothing() -> None:
    rules = allowed_lags({"nightly-*": 10_000, "nightly-audit": 0})
    assert [rules.of(group) for group in ("nightly-a", "nightly-audit", "daily-a")] == [10_000, 0, 0]
    assert allowed_lags({"nightly-*": 10_000, "nightly-audit": 0}) is rules


_LETTERS = st.text("ab.[*?", max_size=8)


@given(st.text("ab.[", max_size=10), st.lists(_LETTERS, max_size=5, unique=True))
def test_it_fits_what_a_shell_would_fit(group: str, patterns: list[str]) -> None:
    """With the brackets of a shell taken as they stand."""
    fits = {p for p in patterns if p == group or fnmatchcase(group, p.replace("[", "[[]"))}
    winner = decides(group, *patterns)
    assert (winner in fits) if fits else winner is None
    if group in patterns:
        assert winner == group


def test_no_pattern_is_slow() -> None:
    """5,000 groups and 100 rules that nearly fit, each with many places to try; a backtracking match never ends."""
    hostile = {"*a" * n + "*b": n for n in range(28, 128)}
    names = [f"{'a' * 200}-{n}" for n in range(5000)]
    rules = allowed_lags(hostile)
    begun = time.process_time()
    assert not any(rules.of(name) for name in names[:500])
    assert time.process_time() - begun < 5
    usual = allowed_lags({f"team-{n}-*": n for n in range(100)})
    begun = time.process_time()
    assert sum(usual.of(f"team-{n % 100}-reader-{n}") for n in range(5000)) == 50 * sum(range(100))
    assert time.process_time() - begun < 2


# ---- the heatmap


def test_heatmap__most_lag_first_and_unknown_is_not_zero() -> None:
    def lag(partition: int, *samples: tuple[int | None, int | None]) -> PartitionLag:
        looks = [OffsetSample(60.0 * n, committed, end) for n, (committed, end) in enumerate(samples)]
        return PartitionLag("t", partition, LagState.OK, looks)

    seen = lag_heatmap([lag(0, (5, 5), (5, 6)), lag(1, (0, 1000), (None, 1000)), lag(2, (7, 7), (7, 7))])
    assert [row.name for row in seen.rows] == ["t-1", "t-0", "t-2"]
    assert [[(cell.lag, cell.level) for cell in row.cells] for row in seen.rows] == [
        [(1000, 5), (None, 0)],
        [(0, 0), (1, 1)],
        [(0, 0), (0, 0)],
    ]
    assert (len(seen.times), seen.more) == (2, 0)


def test_heatmap__many_partitions__names_how_many_are_left_out() -> None:
    looks = [OffsetSample(60.0, 0, 1)]
    seen = lag_heatmap([PartitionLag("t", n, LagState.OK, looks) for n in range(HEAT_ROWS + 3)])
    assert (len(seen.rows), seen.more) == (HEAT_ROWS, 3)
