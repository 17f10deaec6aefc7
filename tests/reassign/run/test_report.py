"""The report of a run: made when it ends, the same on its page and as files, and honest about what is not known."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from unittest import mock

import pytest

from kafkadash.accounts.audit import record
from kafkadash.accounts.models import User
from kafkadash.changes import running
from kafkadash.changes.models import ChangeRequest, RequestState
from kafkadash.domain.executor_state import State as RowState
from kafkadash.domain.reasons import reason_columns
from kafkadash.domain.row_reasons import CancelledByOthers, TopicDeleted
from kafkadash.domain.throttles import LEADER_RATE
from kafkadash.domain.workflow_states import State
from kafkadash.reassign.models import Execution, Move, ThrottleEntry
from kafkadash.reassign.run import orders, report
from kafkadash.reassign.run.report import stored_report
from kafkadash.reassign.run.report_text import ReportShown, markdown
from tests.factories import ReassignmentFactory
from tests.reassign.run.runs import ROWS, World

pytestmark = pytest.mark.django_db
EVERY_BROKER = "Every broker that was there when it began was there at each look until it ended."


@pytest.fixture
def done(world: World, operator: User) -> ChangeRequest:
    world.queue(operator)
    world.until(RequestState.EXECUTING)
    world.tick()
    running.pause(world.change(), operator, "p99 is high.")
    world.tick(120)
    running.resume(world.change(), operator, "It is down.")
    orders.set_throttle(world.change(), operator, "600", "*All* is quiet | now.")
    return world.until(RequestState.DONE)


def meanwhile(world: World) -> list[str]:
    return list(stored(world)["meanwhile"])


def stored(world: World) -> Mapping[str, Any]:
    made: Mapping[str, Any] = Execution.objects.get(request=world.runs[0]).report
    return made


def test_it_is_stored_when_the_run_ends(world: World, done: ChangeRequest, operator: User) -> None:
    made = ReportShown(stored(world))
    run = world.run()
    assert (made.number, made.ended, made.state) == (done.pk, "Done, clean", "ok")
    assert made.started_at == run.started_at
    assert made.ended_at == run.ended_at
    assert made.stored["rows"] == {"total": len(ROWS), "by_end": {"done": len(ROWS)}}
    assert made.headline.startswith(f"{len(ROWS)} of {len(ROWS)} partitions moved")
    assert made.throttle_words == "Nothing of our throttles is left."
    assert [(one.who, one.did) for one in made.people if one.person] == [
        (operator.username, "started it: queued for its turn"),
        (operator.username, "paused it: nothing more is submitted"),
        (operator.username, "resumed it"),
        (operator.username, "raised the throttle 500 → 600 MB/s"),
    ]


def test_what_came_otherwise_is_said(world: World, done: ChangeRequest) -> None:
    said = " ".join(ReportShown(stored(world)).stored["deviations"])
    assert "The plan reckoned with at least 42 s at 500 MB/s; it took 2 min" in said
    assert "The throttle was changed once; it was 600 MB/s last." in said


def test_a_page_shows_what_was_stored_and_makes_it_where_that_failed(world: World, operator: User) -> None:
    world.queue(operator)
    with mock.patch.object(report, "report_of", side_effect=RuntimeError("a fault of ours")):
        change = world.until(RequestState.DONE)
    assert stored(world) == {}, "the run ended all the same"
    made = stored_report(change)
    assert made is not None
    assert ReportShown(made).ended == "Done, clean"
    assert stored_report(ChangeRequest(pk=change.pk + 1)) is None


def test_rows_that_ended_otherwise_are_named_with_their_reasons(world: World, operator: User) -> None:
    world.queue(operator)
    world.until(RequestState.EXECUTING)
    orders.row(world.change(), operator, "orders", 0, "cancel_row", "Not this one.")
    world.until(RequestState.DONE)
    made = ReportShown(stored(world))
    assert (made.ended, made.state) == ("Done, with exceptions", "warning")
    (row,) = made.otherwise
    assert (row.name, row.words) == ("orders-0", "cancelled")
    assert "Not this one." in row.reason
    assert f"1 partition of {len(ROWS)} ended otherwise: cancelled." in made.stored["deviations"]
    assert made.headline.startswith(f"{len(ROWS) - 1} of {len(ROWS)} partitions moved")
    assert made.ends == [("done", len(ROWS) - 1), ("cancelled", 1)]


def test_many_of_them_are_counted(world: World, operator: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "MOST_ROWS", 2)
    world.queue(operator)
    world.until(RequestState.EXECUTING)
    running.cancel(world.change(), operator, "Enough.")
    world.until(RequestState.CANCELLED)
    made = ReportShown(stored(world))
    assert (made.ended, len(made.otherwise), made.more_otherwise) == ("Cancelled", 2, len(ROWS) - 2)
    assert f"and {len(ROWS) - 2} more" in markdown(made)
    assert any(one.did == "cancelled the run" and one.detail == ["Enough."] for one in made.people)


def test_what_changed_elsewhere_is_said_as_far_as_it_is_stored(world: World, operator: User) -> None:
    world.queue(operator)
    world.until(RequestState.EXECUTING)
    seen = {"cluster": world.cluster, "started_before": world.clock, "last_seen_at": world.clock}
    ReassignmentFactory.create(topic="audit", partition=7, target=[1, 2, 4], **seen)
    ReassignmentFactory.create(topic="orders", partition=0, target=[1, 2, 6], **seen)
    world.until(RequestState.DONE)
    assert meanwhile(world) == [
        "Others moved 1 partition: audit-7.",
        EVERY_BROKER,
        "Which topics were created or deleted elsewhere is not recorded, so it is not known.",
        "No throttle of others was found where ours stood.",
    ]


def test_a_broker_that_was_away_is_told_with_its_times(world: World, operator: User) -> None:
    """KRaft keeps a dead broker registered and fences it; it never leaves the list of brokers."""
    world.model.brokers[7] = True  # nothing of the run lies on it, so that the run ends without it
    world.queue(operator)
    world.until(RequestState.EXECUTING)
    world.tick()
    world.model.stop(5)
    left = world.clock
    world.tick()
    world.tick()
    world.model.start(5)
    back = world.clock
    world.tick()
    world.model.stop(7)
    gone = world.clock
    world.until(RequestState.DONE)
    assert meanwhile(world)[1:3] == [
        f"Broker 5 was away from {left:%d %b %H:%M:%S} UTC to {back:%d %b %H:%M:%S} UTC, 4 s.",
        f"Broker 7 was away from {gone:%d %b %H:%M:%S} UTC on, and was not back when it ended.",
    ]
    assert EVERY_BROKER not in meanwhile(world)


def test_brokers_are_not_said_to_have_stayed_where_nobody_looked(world: World, operator: User) -> None:
    world.queue(operator)
    world.until(RequestState.EXECUTING)
    world.tick()
    world.passes(180)
    change = world.until(RequestState.DONE)
    unseen = "No broker was seen away, but one could have been: the cluster was not read for up to 3 min"
    assert meanwhile(world)[1].startswith(unseen)
    Execution.objects.update(report={}, absences=None)
    made = stored_report(change)
    assert made is not None
    assert made["meanwhile"][1] == "Whether brokers were away meanwhile was not recorded."


def test_what_others_did_to_its_rows_and_throttles_is_told_once(world: World, operator: User) -> None:
    world.queue(operator)
    world.until(RequestState.EXECUTING)
    world.tick()
    world.until(RequestState.VERIFYING)
    Move.objects.filter(topic="orders", partition=4).update(
        state=RowState.SUPERSEDED, **reason_columns(CancelledByOthers())
    )
    Move.objects.filter(topic="clicks").update(state=RowState.TOPIC_DELETED, **reason_columns(TopicDeleted("clicks")))
    about = ("changerequest", str(world.runs[0]))
    for _ in range(2):
        record("kafkadash", "change.throttle_foreign", about, cluster="demo", reason="Another rate: broker 4.")
    change = world.change()
    run = Execution.objects.select_related("request", "cluster").get()
    told = report.report_of(run, State(change.state), "", world.clock)["meanwhile"]
    assert told[0] == "Others moved 1 partition: orders-4."
    assert told[2] == (
        "1 topic of this plan was deleted, or created again: clicks. Of other topics that is not recorded."
    )
    assert len(told) == 4
    assert told[3].endswith("UTC: Another rate: broker 4. That was seen twice.")
    ThrottleEntry.objects.filter(name="4", key=LEADER_RATE).update(again_at=world.clock)
    told = report.report_of(run, State(change.state), "", world.clock)["meanwhile"]
    assert told[4] == (
        "Others removed our rates while it ran, so what stood before is not certain of broker 4, sending as leader."
    )


def test_bytes_that_are_not_known_are_not_zero(world: World, operator: User) -> None:
    world.queue(operator)
    change = world.until(RequestState.DONE)
    Move.objects.update(moved_bytes=None)
    Execution.objects.update(report={})
    none = ReportShown(stored_report(change) or {})
    assert (none.bytes_words, none.rate_words) == ("not known", "not known")
    Move.objects.filter(topic="orders").update(moved_bytes=3_000_000_000)
    some = ReportShown(stored_report(change) or {})
    assert some.bytes_words == "at least 15.0 GB, 1 partition of unknown size"


def test_what_is_still_owed_is_said(world: World, done: ChangeRequest) -> None:
    owed = {**stored(world), "outcome": "obligations", "obligations": ["The rate of broker 4: it is away."]}
    made = ReportShown(owed)
    assert (made.ended, made.state) == ("Done, with obligations", "warning")
    assert "could not be taken away yet" in made.throttle_words
    assert "- The rate of broker 4: it is away." in markdown(made)


def test_the_files_say_the_same_and_text_of_people_is_no_markup(world: World, done: ChangeRequest) -> None:
    ChangeRequest.objects.update(title="Drain <b>3</b>\n# now [x](http://evil)")
    made = stored(world)
    text = markdown(ReportShown({**made, "title": ChangeRequest.objects.get().title}))
    first = text.splitlines()[0]
    assert first == rf"# Change #{done.pk}: Drain \<b\>3\</b\> \# now \[x\]\(http://evil\)"
    assert r"\*All\* is quiet \| now." in text
    assert "## Rows that ended otherwise" not in text
    assert json.loads(json.dumps(made)) == made


def test_the_report_costs_a_few_queries_for_any_number_of_rows(
    world: World, done: ChangeRequest, django_assert_max_num_queries: object
) -> None:
    run = Execution.objects.select_related("request", "cluster").get()
    with django_assert_max_num_queries(12):  # type: ignore[operator]
        report.report_of(run, RequestState.DONE, "clean", world.clock)  # type: ignore[arg-type]


@pytest.mark.parametrize("state", [RowState.FAILED, RowState.TOPIC_DELETED])
def test_every_end_has_words(state: RowState, world: World, done: ChangeRequest) -> None:
    made = {**stored(world), "rows": {"total": 5, "by_end": {"done": 4, state.value: 1}}}
    assert ReportShown(made).ends[0] == ("done", 4)
    assert ReportShown({**made, "state": "failed", "outcome": ""}).state == "critical"
