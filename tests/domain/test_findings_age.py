"""What is judged of old facts: they find nothing, close nothing, and nothing old is OK."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkadash.domain.facts import Partitions
from kafkadash.domain.failure_kinds import FailureKind
from kafkadash.domain.finding_kinds import FindingKind, Source
from kafkadash.domain.findings import evaluate
from kafkadash.domain.status import Refreshed, State, is_stale
from tests.domain.well_cluster import NOW, WELL, ago, kinds, only, state, title, with_old


class TestAge:
    def test_nothing_is_ok_once_metadata_is_older_than_twice_its_interval(self) -> None:
        assert kinds(replace(WELL, metadata=Refreshed(ago(seconds=60), 30))) == []
        facts = replace(WELL, metadata=Refreshed(ago(seconds=61), 30))
        assert state(facts) is State.UNKNOWN
        assert title(facts) == "Cannot tell about demo: nothing was collected for 1 min."

    @pytest.mark.parametrize(
        ("failure", "answer"),
        [
            (FailureKind.UNREACHABLE, "no broker has answered for 12 min"),
            (FailureKind.NOT_AUTHORIZED, "nothing could be read for 12 min"),
        ],
    )
    def test_what_was_wrong_before_is_history_when_nothing_can_be_read(self, failure: str, answer: str) -> None:
        silent = Refreshed(ago(minutes=12), 30, failures=20, failure=failure, error="Why it is so.")
        facts = replace(WELL, metadata=silent, offline=Partitions(7))
        assert (state(facts), kinds(facts)) == (State.UNKNOWN, [FindingKind.UNREACHABLE])
        assert title(facts) == f"Cannot tell about demo: {answer}."
        judged = evaluate(facts, NOW)
        assert judged.found[0].detail == "Why it is so."
        assert judged.cannot_tell(FindingKind.OFFLINE, "")

    @pytest.mark.parametrize(
        ("metadata", "kind", "answer"),
        [
            (Refreshed(), FindingKind.STALE, "nothing was collected yet"),
            (
                Refreshed(failures=3, failure=FailureKind.UNREACHABLE, error="refused"),
                FindingKind.UNREACHABLE,
                "no broker has answered yet",
            ),
        ],
    )
    def test_a_cluster_that_was_never_reached_says_so(
        self, metadata: Refreshed, kind: FindingKind, answer: str
    ) -> None:
        (finding,) = evaluate(replace(WELL, metadata=metadata), NOW).found
        assert (finding.kind, finding.answer) == (kind, answer)

    def test_old_reassignments_make_it_unknown_and_do_not_hide_what_is_worse(self) -> None:
        old = replace(WELL, reassignments=Refreshed(ago(minutes=3), 10))
        assert title(old) == "Cannot tell about demo: nothing new about reassignments for 3 min."
        worse = replace(old, offline=Partitions(1))
        assert (state(worse), kinds(worse)) == (State.CRITICAL, [FindingKind.OFFLINE, FindingKind.STALE])

    @pytest.mark.parametrize("source", [s for s in Source if s is not Source.AGES])
    def test_no_kind_of_facts_may_be_old_in_a_cluster_that_is_ok(self, source: Source) -> None:
        assert state(with_old(source)) is State.UNKNOWN

    @pytest.mark.parametrize("kind", [k for k in FindingKind if k.about.source is not Source.AGES])
    def test_every_kind_is_blind_once_its_facts_are_old(self, kind: FindingKind) -> None:
        assert kind in evaluate(with_old(kind.about.source), NOW).blind

    def test_figures_that_are_not_known_judge_nothing(self) -> None:
        unknown = replace(WELL, offline=Partitions(), under_min_isr=Partitions(), under_replicated=Partitions())
        blind = evaluate(unknown, NOW).blind
        assert {FindingKind.OFFLINE, FindingKind.UNDER_MIN_ISR, FindingKind.UNDER_REPLICATED} <= blind

    def test_a_pace_that_was_quickened_does_not_make_data_stale_sooner_than_ten_seconds(self) -> None:
        assert not is_stale(ago(seconds=9), 2, NOW)
        assert is_stale(ago(seconds=11), 2, NOW)

    @given(
        age=st.floats(min_value=0, max_value=10**6),
        interval=st.floats(min_value=1, max_value=600),
        offline=st.integers(min_value=0, max_value=5),
    )
    def test_old_data_is_never_ok(self, age: float, interval: float, offline: int) -> None:
        facts = replace(WELL, metadata=Refreshed(ago(seconds=age), interval), offline=Partitions(offline))
        if is_stale(ago(seconds=age), interval, NOW):
            assert state(facts) is State.UNKNOWN


class TestNotWatched:
    def test_a_cluster_that_is_switched_off_is_not_judged(self) -> None:
        facts = replace(WELL, enabled=False, offline=Partitions(7), metadata=Refreshed())
        assert (state(facts), kinds(facts)) == (State.MAINTENANCE, [FindingKind.DISABLED])
        assert evaluate(facts, NOW).cannot_tell(FindingKind.OFFLINE, "")
        assert not evaluate(facts, NOW).cannot_tell(FindingKind.UNREACHABLE, "")

    def test_the_cluster_that_was_registered_first_is_named(self) -> None:
        facts = replace(WELL, same_as="east")
        assert (state(facts), kinds(facts)) == (State.UNKNOWN, [FindingKind.REGISTERED_TWICE])
        assert "east" in only(facts)[2]
        assert evaluate(facts, NOW).cannot_tell(FindingKind.OFFLINE, "")

    def test_another_cluster_at_the_address_is_named(self) -> None:
        facts = replace(WELL, kafka_id="one", other_kafka_id="two")
        assert (state(facts), kinds(facts)) == (State.UNKNOWN, [FindingKind.ANOTHER_CLUSTER])
        assert "another Kafka cluster, two" in only(facts)[2]
