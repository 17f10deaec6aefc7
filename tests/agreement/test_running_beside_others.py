"""Runs while somebody else moves and throttles the same: nothing of theirs is lost, and each thing is said."""

from __future__ import annotations

import json
from pathlib import Path

from django.test import Client

from kafkadash.changes.models import RequestState
from kafkadash.domain.row_reasons import MovedByOthers
from kafkadash.playground.cluster import Playground
from kafkadash.reassign.models import Deed, Outcome
from kafkadash.reassign.run import orders
from tests.agreement.conftest import Mover, TopicMaker
from tests.agreement.runs import SLOW, Requests, alter, braked
from tests.agreement.tools import Tools
from tests.factories import ThrottleFactory
from tests.pages.conftest import Page
from tests.waiting import wait_until

LEADER, FOLLOWER = "leader.replication.throttled", "follower.replication.throttled"


def test_a_move_of_somebody_else__before_the_start__makes_it_stale_with_a_sentence(
    requests: Requests, make_topic: TopicMaker, mover: Mover
) -> None:
    topic = make_topic([[1, 2]], mib=8)
    run = requests.approved({(topic, 0): [1, 3]})
    mover.start(topic, [3, 2], throttle=SLOW)
    run.start()
    run.until_it_is(RequestState.STALE)
    run.change.refresh_from_db()
    assert run.change.stale_reasons == [f"{topic}-0: Somebody else reassigns it, to 3, 2."]


def test_a_retarget_by_somebody_else__of_a_row_in_flight__supersedes_it_and_is_not_fought__nor_is_its_cancel(
    requests: Requests, make_topic: TopicMaker, mover: Mover, tools: Tools
) -> None:
    topic = make_topic([[1]], mib=8)
    run = requests.approved({(topic, 0): [2]}).start()
    run.until_moving(topic)
    mover.start(topic, [3], throttle=SLOW, beside=True)
    run.until(lambda: run.row(topic).state == "superseded", "the row is superseded")
    assert run.row(topic).reason == MovedByOthers((3,))
    run.cancel("Somebody else is at it.")
    [listed] = [move for move in tools.moves() if move.topic == topic]
    assert listed.adding == (3,), "their move goes on"
    mover.cancel(topic)
    # What a retarget had begun to add is no adding replica any more: cancelled, it stays (KIP-455).
    wait_until(lambda: not tools.moves(), "their cancel is done", 30)
    assert set(tools.replicas(topic)) == {1, 2}
    assert run.row(topic).state == "superseded"


def test_throttles_of_somebody_else__from_before__are_there_afterwards_as_they_were(
    requests: Requests, make_topic: TopicMaker, tools: Tools, playground: Playground
) -> None:
    listed, starred = make_topic([[1]], mib=3), make_topic([[1]], mib=3)
    alter(playground, 1, **{f"{LEADER}.rate": "30000000"})
    alter(playground, 3, **{f"{FOLLOWER}.rate": "7000000"})
    for broker, key, value in (("1", LEADER, "30000000"), ("3", FOLLOWER, "7000000")):  # read long before the run
        ThrottleFactory.create(cluster=requests.cluster, name=broker, key=f"{key}.rate", value=value)
    alter(playground, listed, **{f"{LEADER}.replicas": "0:1,0:3", f"{FOLLOWER}.replicas": "0:3"})
    alter(playground, starred, **{f"{FOLLOWER}.replicas": "*"})
    try:
        before = [tools.run("configs", "--describe", "--entity-type", kind) for kind in ("brokers", "topics")]
        run = requests.approved({(listed, 0): [2], (starred, 0): [2]}).start()
        run.until_moving(listed)
        braked(tools, 1, f"{LEADER}.rate", SLOW)
        during = tools.throttles(listed, starred, 1, 3)
        assert during[1, f"{LEADER}.rate"] == str(SLOW)
        assert set(during[listed, f"{FOLLOWER}.replicas"].split(",")) == {"0:3", "0:2"}
        assert during[starred, f"{FOLLOWER}.replicas"] == "*"
        assert {name: value for (owner, name), value in during.items() if owner == 3} == {f"{FOLLOWER}.rate": "7000000"}
        run.raise_throttle("1000")
        run.until_it_is(RequestState.DONE)
        assert run.execution.outcome == Outcome.CLEAN
        after = [tools.run("configs", "--describe", "--entity-type", kind) for kind in ("brokers", "topics")]
        assert after == before
    finally:
        alter(playground, 1, **{f"{LEADER}.rate": None})
        alter(playground, 3, **{f"{FOLLOWER}.rate": None})
        alter(playground, listed, **{f"{LEADER}.replicas": None, f"{FOLLOWER}.replicas": None})
        alter(playground, starred, **{f"{FOLLOWER}.replicas": None})


def test_a_throttle_that_somebody_else_changes_meanwhile__stops_adjusting_until_somebody_decides(
    requests: Requests, make_topic: TopicMaker, tools: Tools, playground: Playground, alices_client: Client
) -> None:
    topic = make_topic([[1]], mib=32)
    run = requests.approved({(topic, 0): [2]}).start()
    run.until_moving(topic)
    alter(playground, 1, **{f"{LEADER}.rate": "777777"})
    run.until(lambda: run.execution.foreign, "it is found")
    [theirs] = run.execution.foreign
    assert (theirs["value"], theirs["ours"]) == ("777777", str(SLOW))
    page = Page(alices_client.get(f"/changes/{run.change.pk}/run/").content.decode()).text
    assert "0.777777 MB/s (777,777 B/s) , and that is not ours: we set 0.2 MB/s (200,000 B/s)" in page
    run.raise_throttle("2", "Faster.")
    for _ in range(3):
        run.step()
    assert tools.throttles(1)[1, f"{LEADER}.rate"] == "777777"
    entity = f"{theirs['resource']} {theirs['name']} {theirs['key']}"
    orders.throttle_owner(run.change, run.alice, entity, Deed.SET_THROTTLE, "They agreed.")
    run.until(lambda: tools.throttles(1)[1, f"{LEADER}.rate"] == "2000000", "ours is set again")
    run.until(lambda: not run.execution.foreign, "it is settled")
    run.raise_throttle("1000")
    run.until_it_is(RequestState.DONE)
    left = tools.throttles(topic, 1, 2, 3)
    alter(playground, 1, **{f"{LEADER}.rate": None})
    assert left == {(1, f"{LEADER}.rate"): "777777"}, "theirs is put back"


def test_kafkas_own_tool__taking_our_throttles_away__is_reported_and_they_are_set_again(
    requests: Requests, make_topic: TopicMaker, tools: Tools, tmp_path: Path
) -> None:
    topic, other = make_topic([[1]], mib=8), make_topic([[3]])
    file = tmp_path / "other.json"
    entry = {"topic": other, "partition": 0, "replicas": [3]}
    file.write_text(json.dumps({"version": 1, "partitions": [entry]}), encoding="utf-8")
    # What holds the move back while ours are away.
    tools.set_config(None, **{f"{role}.rate": str(SLOW) for role in (LEADER, FOLLOWER)})
    try:
        run = requests.approved({(topic, 0): [2]}).start()
        run.until_moving(topic)
        for broker in (1, 2):
            braked(tools, broker, f"{FOLLOWER}.rate", SLOW)
        ours = tools.throttles(1, 2)
        assert ours == {(broker, f"{role}.rate"): str(SLOW) for broker in (1, 2) for role in (LEADER, FOLLOWER)}
        tools.run("reassign", "--reassignment-json-file", str(file), "--verify")
        run.step()
        assert tools.throttles(1, 2) == ours, "the tool takes nothing away while something moves"
        tools.run("reassign", "--reassignment-json-file", str(file), "--cancel")
        wait_until(lambda: tools.throttles(1, 2) == {}, "each broker has heard that the tool took ours away")
        run.until(lambda: tools.throttles(1, 2) == ours, "they are set again")
        [event] = run.said("throttle_vanished")
        assert "broker 1" in event.reason
        run.raise_throttle("1000")
        run.until_it_is(RequestState.DONE)
        assert tools.throttles(1, 2) == {}
        [told] = [said for said in run.execution.report["meanwhile"] if event.reason in said]
        assert told.endswith(event.reason), "once"
    finally:
        tools.delete_config(None, *(f"{role}.rate" for role in (LEADER, FOLLOWER)))
