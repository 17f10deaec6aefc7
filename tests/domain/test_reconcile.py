"""What opens, goes on and closes: one open finding of a kind and scope, and nothing closes for want of data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from kafkadash.domain.finding import Finding
from kafkadash.domain.finding_kinds import FindingKind
from kafkadash.domain.findings import Evaluation
from kafkadash.domain.reconcile import Known, reconcile

NOW = datetime(2026, 11, 21, 2, 3, 4, tzinfo=UTC)
AT_ONCE, SECOND_LOOK = FindingKind.BROKER_DOWN, FindingKind.UNDER_REPLICATED
KEYS = [(AT_ONCE, "1"), (AT_ONCE, "2"), (SECOND_LOOK, "")]
Key = tuple[FindingKind, str]


def at(reading: int) -> datetime:
    return NOW + timedelta(seconds=reading)


def seen(reading: int, found: Sequence[Key], blind: frozenset[Key] = frozenset()) -> Evaluation:
    """An evaluation of facts that were read at this time; kinds without scopes are blind as a whole."""
    return Evaluation(
        tuple(Finding(kind, "It is so.", "is so", at(reading), scope=scope) for kind, scope in found),
        blind_scopes=blind,
        taken=dict.fromkeys(FindingKind, at(reading)),
    )


@dataclass
class Store:
    """Applies the steps, and keeps what was open with its identity."""

    open: dict[Key, Known[int]]
    ids: count[int]
    closed: list[int]

    @classmethod
    def empty(cls) -> Store:
        return cls({}, count(), [])

    def take(self, evaluation: Evaluation) -> bool:
        """True if anything changed."""
        steps = reconcile(list(self.open.values()), evaluation, at(10**6))
        for finding, opens in steps.begin:
            key = (finding.kind, finding.scope)
            assert key not in self.open
            self.open[key] = Known(*key, opens, 1, finding.taken_at, next(self.ids))
        changed = bool(steps.begin or steps.close or steps.drop)
        for step in steps.seen:
            own = step.known
            after = replace(own, opened=own.opened or step.opens, looks=step.looks, seen_at=step.finding.taken_at)
            changed |= after != own
            self.open[own.kind, own.scope] = after
        for gone, when in steps.close:
            assert when >= gone.seen_at
            assert gone.opened
            self.closed.append(gone.row)
        for gone in (*(g for g, _ in steps.close), *steps.drop):
            del self.open[gone.kind, gone.scope]
        return changed

    @property
    def opened(self) -> set[Key]:
        return {key for key, own in self.open.items() if own.opened}


def test_certain_ones_open_at_once_and_those_that_may_pass_at_the_second_reading() -> None:
    store = Store.empty()
    store.take(seen(1, KEYS))
    assert store.opened == {(AT_ONCE, "1"), (AT_ONCE, "2")}
    store.take(seen(2, KEYS))
    assert store.opened == set(KEYS)


def test_the_same_reading_judged_again_is_no_second_look() -> None:
    store = Store.empty()
    for _ in range(5):
        store.take(seen(1, [(SECOND_LOOK, "")]))
    assert store.opened == set()


def test_one_that_was_not_seen_again_before_it_opened_never_was() -> None:
    store = Store.empty()
    store.take(seen(1, [(SECOND_LOOK, "")]))
    store.take(seen(2, []))
    assert (store.open, store.closed) == ({}, [])


def test_open_and_close_carry_the_same_identity_and_a_return_another() -> None:
    store = Store.empty()
    store.take(seen(1, [(AT_ONCE, "1")]))
    first = store.open[AT_ONCE, "1"].row
    store.take(seen(2, [(AT_ONCE, "1")]))
    store.take(seen(3, []))
    store.take(seen(4, [(AT_ONCE, "1")]))
    assert store.closed == [first]
    assert store.open[AT_ONCE, "1"].row != first


def test_what_cannot_be_told_stays_as_it_is() -> None:
    store = Store.empty()
    store.take(seen(1, KEYS))
    before = dict(store.open)
    assert not store.take(seen(2, [], blind=frozenset(KEYS)))
    assert store.open == before


def test_facts_that_are_older_than_the_last_look_change_nothing() -> None:
    store = Store.empty()
    store.take(seen(5, [(AT_ONCE, "1")]))
    assert not store.take(seen(3, [(AT_ONCE, "1")]))


@st.composite
def _stories(draw: st.DrawFn) -> list[Evaluation]:
    """Readings one after the other; some are judged more than once, in some a part cannot be told."""
    story, reading = [], 0
    for _ in range(draw(st.integers(1, 12))):
        reading += draw(st.integers(0, 1))
        found = draw(st.lists(st.sampled_from(KEYS), unique=True))
        blind = draw(st.lists(st.sampled_from(KEYS), unique=True))
        story.append(seen(reading, found, frozenset(blind)))
    return story


@given(_stories())
def test_any_story_keeps_the_rules(story: list[Evaluation]) -> None:
    store = Store.empty()
    for evaluation in story:
        before, closed = dict(store.open), len(store.closed)
        store.take(evaluation)
        found = {(f.kind, f.scope) for f in evaluation.found}
        for key, own in before.items():
            if key in found or evaluation.cannot_tell(*key):
                assert store.open[key].row == own.row, "lost its identity, or closed without fresh data saying so"
                assert store.open[key].opened >= own.opened
            else:
                assert key not in store.open, "fresh data says that it is over"
        assert found <= set(store.open)
        assert all(own.opened == (own.looks >= key[0].about.looks) for key, own in store.open.items())
        assert len(set(store.closed)) == len(store.closed) >= closed
        assert not store.take(evaluation), "the same facts again change nothing"
