"""The drain that waits when the demo has started: proposed once, with words instead where it cannot be."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from kafkadash.accounts.models import User
from kafkadash.changes.models import ChangeRequest, RequestState
from kafkadash.clusters.models import Cluster, Role
from kafkadash.clusters.services import give_role
from kafkadash.core.json_columns import unpack_dataclass
from kafkadash.devtools.demo import drain
from kafkadash.devtools.demo.sample import ARCHIVE_AT, DRAINED
from kafkadash.jobs.models import Job, JobState
from kafkadash.jobs.runner import attempt_job
from kafkadash.planning import proposal as drafts
from kafkadash.planning.impact import PlanImpact, estimate_copy_seconds
from tests.planning.stored import stored

MB = 1_000_000
RACKS = {1: "a", 2: "a", 3: "b", 4: "b", 5: "c"}


@pytest.fixture(autouse=True)
def workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run what is queued as soon as somebody waits for it."""

    def wait_for(condition: Callable[[], bool], _deadline: float, otherwise: str) -> None:
        for job in Job.objects.filter(state=JobState.QUEUED):
            attempt_job(job.pk)
        assert condition(), otherwise

    monkeypatch.setattr(drain, "wait_for", wait_for)


@pytest.fixture
def alice(db: None) -> User:
    alice = User.objects.create_user("alice")
    give_role("test", alice, Role.OPERATOR)
    return alice


def demo(size: int = 105 * MB, racks: Mapping[int, str | None] = RACKS) -> Cluster:
    return stored(topics={"clickstream-archive": ARCHIVE_AT}, racks=racks, size=size)


def test_first_start__proposes_a_drain_of_a_minute_and_more(alice: User) -> None:
    cluster = demo()
    assert drain.propose_drain().startswith(f"#{cluster.changes.get().pk} Drain broker {DRAINED}, 420 MB, waiting")
    change = cluster.changes.get()
    assert (change.state, change.author, change.why) == (RequestState.PROPOSED, alice, drain.WHY)
    impact = unpack_dataclass(PlanImpact, change.report.impact)
    assert impact.emptied == (DRAINED,)
    assert (estimate_copy_seconds(impact, drain.OPTIONS.throttle) or 0) >= 80


@pytest.mark.parametrize("state", [s for s in RequestState if s not in (*drain.OVER, RequestState.DRAFT)])
def test_next_start__makes_no_second_request(alice: User, state: RequestState) -> None:
    cluster = demo()
    drain.propose_drain()
    cluster.changes.update(state=state)
    words = drain.propose_drain()
    assert f"#{cluster.changes.get().pk} " in words
    assert state.label.lower() in words
    assert cluster.changes.count() == 1


def test_start_after_one_that_was_cut_short__goes_on_with_its_draft(alice: User) -> None:
    cluster = demo()
    left = drafts.begin_draft(cluster, alice, drain.ASKED.mode, drain.ASKED.brokers)
    assert "waiting for bob" in drain.propose_drain()
    assert [(c.pk, c.state) for c in ChangeRequest.objects.all()] == [(left.pk, RequestState.PROPOSED)]


def test_start_after_it_expired__proposes_it_again(alice: User) -> None:
    cluster = demo()
    drain.propose_drain()
    cluster.changes.update(state=RequestState.EXPIRED)
    assert "waiting for bob" in drain.propose_drain()
    assert cluster.changes.count() == 2


def test_broker_that_was_drained__is_not_drained_again(alice: User) -> None:
    cluster = demo(size=MB)
    words = drain.propose_drain()
    assert words.startswith("no drain: broker 2 ")
    assert "4 MB" in words
    assert not cluster.changes.exists()


def test_racks_that_allow_no_drain__are_said_and_stop_nothing(alice: User) -> None:
    demo(racks={1: "a", 2: "b", 3: "c", 4: "d", 5: None})
    assert drain.propose_drain().startswith("no drain: Broker 5 ")
    assert not ChangeRequest.objects.exclude(state=RequestState.DRAFT).exists()
