"""The state of a consumer on a partition: Burrow's figures, polled windows, and what holds for every window."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkadash.domain.lag import WINDOW, LagState, Sample, clear, judge
from tests.domain.lag_cases import CASES, Case, Window
from tests.domain.lag_windows import random_windows


def state_of(window: Window) -> LagState:
    return judge(
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
    one = (Sample(500, 100, 10.0),)
    assert judge(one, lag=100, ends=(600,), now=9e9, has_members=False) is LagState.UNKNOWN


_OFFSETS = st.integers(0, 12) | st.integers(0, 2**62)
_SAMPLES = st.lists(
    st.builds(Sample, st.none() | _OFFSETS, st.none() | _OFFSETS, st.none() | st.floats(0, 1000)), max_size=12
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
    early = clear(known, window.lag, window.allowed, window.minimum)
    assert early in (None, state_of(window))


@given(WINDOWS)
def test_time_alone_changes_nothing_where_no_commit_time_is_known(window: Window) -> None:
    polled = replace(window, samples=tuple(Sample(s.committed, s.lag) for s in window.samples))
    assert state_of(polled) == state_of(replace(polled, now=window.now + 1e9))


@given(WINDOWS)
def test_members_only_name_a_standstill(window: Window) -> None:
    polled = replace(window, samples=tuple(Sample(s.committed, s.lag) for s in window.samples))
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
