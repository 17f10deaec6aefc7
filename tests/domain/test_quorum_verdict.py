"""The sentence that says how the controllers stand, and when their leader is called flapping."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from kafkadash.domain.failure_kinds import FailureKind
from kafkadash.domain.quorum import Quorum, QuorumNode, quorum
from kafkadash.domain.quorum_history import Reign, changes, is_flapping, recent_changes
from kafkadash.domain.quorum_verdict import QuorumVerdict, quorum_verdict
from kafkadash.domain.status import NEVER, Refreshed, State

NOW = datetime(2026, 11, 21, 2, 3, 4, tzinfo=UTC)
MS = 1_700_000_000_000
SILENT = "not heard from since the leader changed."
FRESH = Refreshed(NOW - timedelta(seconds=6), 10)


def of(*behind: int | None) -> Quorum:
    """Voter 1 leads; the others are this many ms behind, None: not heard from since the leader changed."""
    nodes = [QuorumNode(1, "", voter=True, log_end_offset=9, last_fetch_ms=None, last_caught_up_ms=MS)]
    for id_, ms in enumerate(behind, 2):
        then = None if ms is None else MS - ms
        end = None if ms is None else 9
        nodes.append(QuorumNode(id_, "", voter=True, log_end_offset=end, last_fetch_ms=then, last_caught_up_ms=then))
    return quorum(nodes, leader_id=1, epoch_seen_s=1)


def said(
    seen: Quorum | None, asked: Refreshed = FRESH, metadata: Refreshed = FRESH, recent_changes: int = 0
) -> QuorumVerdict:
    return quorum_verdict(seen, asked, metadata, recent_changes, NOW)


@pytest.mark.parametrize(
    ("seen", "state", "title"),
    [
        (of(5, 5), State.OK, "The quorum survives 1 more failure."),
        (of(5, 5, 5, 5), State.OK, "The quorum survives 2 more failures."),
        (of(5, 5, 5, 9000), State.WARNING, "The quorum survives 1 more failure."),
        (of(5, 9000), State.WARNING, "The quorum survives no further failure."),
        (of(9000, 9000), State.WARNING, "Only 1 of 3 voters is in sync, and a majority is 2."),
        (of(5, 9000, 9000, 9000), State.WARNING, "Only 2 of 5 voters are in sync, and a majority is 3."),
        (of(5), State.OK, "The quorum survives no further failure."),
        (of(), State.OK, "The quorum has a single voter: without it nothing can be elected or changed."),
        (
            of(None, None),
            State.UNKNOWN,
            f"Cannot tell yet how many failures the quorum survives: 2 voters were {SILENT}",
        ),
        (
            of(5, None),
            State.UNKNOWN,
            f"The quorum survives no further failure as far as is known: 1 voter was {SILENT}",
        ),
        (of(5, 5, 5, None), State.OK, "The quorum survives at least 1 more failure."),
    ],
)
def test_the_title_counts_what_may_still_fail(seen: Quorum, state: State, title: str) -> None:
    assert (said(seen).state, said(seen).title) == (state, title)


def test_an_old_kafka_that_tells_no_times_is_named_as_the_reason() -> None:
    nodes = [
        QuorumNode(n, "", voter=True, log_end_offset=9, last_fetch_ms=None, last_caught_up_ms=None) for n in (1, 2)
    ]
    verdict = said(quorum(nodes, leader_id=1, epoch_seen_s=600))
    assert verdict.state is State.UNKNOWN
    assert "a Kafka before 3.3 tells no times" in verdict.title


@pytest.mark.parametrize("failure", [FailureKind.QUORUM_UNAVAILABLE, FailureKind.DEADLINE_EXCEEDED])
def test_silent_controllers_behind_brokers_that_answer_are_a_lost_quorum(failure: str) -> None:
    asked = Refreshed(NOW - timedelta(seconds=70), 10, failures=2, failure=failure, error="It timed out.")
    verdict = said(of(5, 5), asked)
    assert verdict.lost
    assert verdict.state is State.CRITICAL
    assert verdict.title == "The quorum is lost: no leader can be elected and nothing can be changed."
    assert "as it was 1 min 10 s ago" in verdict.detail


def test_one_refresh_without_an_answer_is_not_yet_a_lost_quorum() -> None:
    asked = Refreshed(
        NOW - timedelta(seconds=15), 10, failures=1, failure=FailureKind.QUORUM_UNAVAILABLE, error="It timed out."
    )
    assert said(of(5, 5), asked).title == "The quorum survives 1 more failure."


def test_a_cluster_that_does_not_answer_at_all_has_an_unknown_quorum_not_a_lost_one() -> None:
    asked = Refreshed(
        NOW - timedelta(minutes=12), 10, failures=9, failure=FailureKind.DEADLINE_EXCEEDED, error="It timed out."
    )
    silent = Refreshed(
        NOW - timedelta(minutes=12), 30, failures=3, failure=FailureKind.DEADLINE_EXCEEDED, error="It timed out."
    )
    verdict = said(of(5, 5), asked, silent)
    assert (verdict.state, verdict.lost) == (State.UNKNOWN, False)
    assert verdict.title == "Cannot tell how the quorum stands: it was last heard of 12 min ago."
    assert verdict.detail == "It timed out."


def test_never_asked_and_not_allowed_are_unknown_and_say_why() -> None:
    assert said(None, NEVER).title == "Cannot tell how the quorum stands: the controllers have not answered yet."
    refused = Refreshed(None, 10, failures=9, failure=FailureKind.NOT_AUTHORIZED, error="The principal needs Describe.")
    verdict = said(None, refused)
    assert verdict.title == "Cannot tell how the quorum stands: kafkadash may not ask for it."
    assert verdict.detail == "The principal needs Describe."


@pytest.mark.parametrize(("number", "flaps"), [(3, False), (4, True)])
def test_more_than_three_changes_in_ten_minutes_are_flapping(number: int, flaps: bool) -> None:
    begin = NOW - timedelta(minutes=9)
    reigns = [Reign(1, 40, NOW - timedelta(hours=3), begin)]
    reigns += [Reign(1 + n % 2, 41 + n, begin + timedelta(minutes=n), begin) for n in range(number)]
    seen = changes(reigns)
    assert recent_changes(seen, NOW) == number
    assert is_flapping(seen, NOW) is flaps
    title = said(of(5, 5), recent_changes=number).title
    assert title == (
        "The leader of the quorum keeps changing: 4 changes in 10 minutes."
        if flaps
        else "The quorum survives 1 more failure."
    )


def test_changes_longer_ago_do_not_flap() -> None:
    reigns = [Reign(1, n, NOW - timedelta(minutes=60 - n), NOW) for n in range(8)]
    assert len(changes(reigns)) == 7
    assert not is_flapping(changes(reigns), NOW)


def test_what_is_known_first_is_no_change_and_epochs_nobody_saw_are_counted() -> None:
    first = Reign(1, 40, NOW - timedelta(hours=3), NOW - timedelta(hours=1))
    later = Reign(2, 43, NOW - timedelta(hours=1), NOW)
    assert changes([first]) == []
    [change] = changes([later, first])
    assert (change.before, change.after, change.unseen) == (first, later, 2)
