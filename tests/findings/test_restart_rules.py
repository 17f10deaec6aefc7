"""Restart checks: no yes against the definitions, and an order in which each step is allowed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkadash.findings.errors import OnCallErrorCode as Code
from kafkadash.findings.restart import (
    EndingMove,
    RestartBroker,
    RestartFacts,
    RestartPlace,
    RestartVerdict,
    find_behind,
    judge_restart,
    order_restarts,
)
from kafkadash.findings.simulation import SimulatedPartition, simulate_failure
from kafkadash.monitoring.quorum.rules import NodeStatus, QuorumHealth, QuorumNode, judge_quorum
from tests.findings.test_drill_rules import placed

pytestmark = pytest.mark.domain

YES, NO, UNKNOWN = RestartVerdict.YES, RestartVerdict.NO, RestartVerdict.UNKNOWN
IDS = range(1, 8)
RACKS = {1: "a", 2: "b", 3: "c", 4: "a", 5: "b", 6: "c", 7: None}


def up(*ids: int, **states: str) -> dict[int, RestartBroker]:
    """Brokers that are up; ``b3="fenced"``: another state of broker 3."""
    return {n: RestartBroker(n, RACKS[n], states.get(f"b{n}", "up")) for n in ids}


def part(*replicas: int, isr: tuple[int, ...] | None = None, least: int | None = 2) -> SimulatedPartition:
    in_sync = replicas if isr is None else isr
    return SimulatedPartition("t", 0, next(iter(in_sync), None), replicas, in_sync, least)


def voters(*ids: int, behind: int = 0, unheard: int = 0) -> QuorumHealth:
    """A quorum led by the first of ``ids``; the last ones are far behind, or were not heard from."""
    stale, silent = ids[len(ids) - behind :], ids[len(ids) - unheard :]
    nodes = [
        QuorumNode(n, "", voter=True, log_end_offset=9, last_fetch_ms=1_000_000, last_caught_up_ms=1_000_000)
        for n in ids
    ]
    nodes = [replace(node, last_caught_up_ms=900_000) if node.id in stale else node for node in nodes]
    nodes = [
        replace(node, log_end_offset=None, last_fetch_ms=None, last_caught_up_ms=None) if node.id in silent else node
        for node in nodes
    ]
    return judge_quorum(nodes, ids[0], epoch_seen_s=3)


def facts_of(*partitions: SimulatedPartition, **more: object) -> RestartFacts:
    given_: dict[str, object] = {"brokers": up(1, 2, 3), "quorum": voters(101, 102, 103), **more}
    return RestartFacts([p._replace(number=n) for n, p in enumerate(partitions)], **given_)  # type: ignore[arg-type]


FULL = part(1, 2, 3)
MOVE = {("t", 0): EndingMove(frozenset({3}), (3, 2))}


@pytest.mark.parametrize(
    ("facts", "verdict", "codes"),
    [
        (facts_of(FULL), YES, []),
        (facts_of(part(2)), NO, [Code.RESTART_GOES_OFFLINE]),
        (facts_of(part(1, 2, 3, least=3)), NO, [Code.RESTART_STOPS_WRITES]),
        (facts_of(part(1, 2, 3, isr=(1, 2))), NO, [Code.RESTART_STOPS_WRITES, Code.RESTART_OTHERS_BEHIND]),
        (facts_of(part(1, 3, isr=(1,), least=1)), NO, [Code.RESTART_OTHERS_BEHIND]),
        (facts_of(part(1, 2, 3, isr=(1, 3))), YES, []),  # the replica of broker 2 itself is behind
        (facts_of(part(1, 3, least=3)), YES, []),
        # An adding replica outside the ISR neither helps nor has to catch up; the one that is removed will be gone.
        (facts_of(part(3, 1, 2, isr=(1, 2), least=1), moves=MOVE), YES, []),
        (facts_of(part(3, 1, 2, isr=(1, 2), least=2), moves=MOVE), NO, [Code.RESTART_STOPS_WRITES]),
        (
            facts_of(part(1, 2, 3, least=2), moves={("t", 0): EndingMove(frozenset(), (1, 2))}),
            NO,
            [Code.RESTART_STOPS_WRITES],
        ),
        (
            facts_of(part(3, 2), moves={("t", 0): EndingMove(frozenset({3}), (2,), running=False, cancelled=True)}),
            NO,
            [Code.RESTART_GOES_OFFLINE],
        ),
        (facts_of(FULL, hidden_topics=None), UNKNOWN, [Code.RESTART_TOPICS_UNCOUNTED]),
        (facts_of(FULL, hidden_topics=3), UNKNOWN, [Code.RESTART_TOPICS_HIDDEN]),
        (facts_of(FULL, stale=["configs"]), UNKNOWN, [Code.RESTART_FACTS_STALE]),
        (facts_of(FULL, early=["topics and brokers"]), UNKNOWN, [Code.RESTART_FACTS_EARLY]),
        (facts_of(part(1, 2, 3, least=None)), UNKNOWN, [Code.RESTART_MIN_ISR_UNKNOWN]),
        (facts_of(FULL, brokers=up(1, 2, 3, b2="silent")), YES, []),  # its own silence is why one restarts it
        (facts_of(part(1, 2, 3, least=1), brokers=up(1, 2, 3, b3="silent")), UNKNOWN, [Code.RESTART_BROKERS_SILENT]),
        (
            facts_of(part(2), metadata_stale=True, stale=["x"]),
            UNKNOWN,
            [Code.RESTART_GOES_OFFLINE, Code.RESTART_FACTS_STALE],
        ),
        (facts_of(FULL, behind_since={3: 4}), NO, [Code.RESTART_OTHERS_BEHIND]),
        (facts_of(FULL, quorum=None), UNKNOWN, [Code.RESTART_QUORUM_UNKNOWN]),
        (facts_of(FULL, quorum=None, kraft=False), YES, []),
        (facts_of(FULL, quorum=voters(1, 2, 3)), YES, []),
        (facts_of(FULL, quorum=voters(1, 2, 3, behind=1)), NO, [Code.RESTART_LOSES_QUORUM]),
        # Before Kafka 4.0 a fenced broker is not listed, while its controller still votes.
        (
            facts_of(FULL, brokers=up(1, 2, 3, b2="gone"), quorum=voters(1, 2, 3, behind=1)),
            NO,
            [Code.RESTART_LOSES_QUORUM],
        ),
        (facts_of(FULL, quorum=voters(101, 102, 103, behind=1)), YES, []),
        (facts_of(FULL, quorum=voters(1, 2, 3, unheard=1)), UNKNOWN, [Code.RESTART_VOTERS_UNHEARD]),
        (facts_of(FULL, quorum=voters(2)), NO, [Code.RESTART_LOSES_QUORUM]),
    ],
)  # fmt: skip
def test_restart_of_broker_2__is_judged_by_what_it_takes(
    facts: RestartFacts, verdict: RestartVerdict, codes: list[Code]
) -> None:
    check = judge_restart(facts, 2)
    assert (check.verdict, [reason.code for reason in check.reasons]) == (verdict, codes)


def test_broker_that_is_down__may_start_though_others_are_behind() -> None:
    facts = facts_of(part(1, 2, 3, isr=(1,)), brokers=up(1, 2, 3, b2="fenced"))
    check = judge_restart(facts, 2)
    assert (check.verdict, check.sentence.code, check.reasons) == (YES, Code.RESTART_OF_DOWN, ())
    assert [each.id for each in judge_restart(facts, 1).behind] == [2, 3]
    old = replace(facts, stale=["topics and brokers"], metadata_stale=True)
    assert judge_restart(old, 2).verdict is UNKNOWN


def test_partition_without_a_leader__waits_for_those_that_could_lead_it() -> None:
    lost = SimulatedPartition("t", 0, None, (1, 2), (1,), 1)
    assert [each.id for each in find_behind(facts_of(lost))] == [1]
    assert find_behind(facts_of(lost), 1) == ()
    kept = lost._replace(isr=(), eligible=(2,))
    assert [each.id for each in find_behind(facts_of(kept))] == [2]


CLUSTERS = st.lists(placed(), max_size=12).map(lambda found: [p._replace(number=n) for n, p in enumerate(found)])
STATES = st.fixed_dictionaries({n: st.sampled_from(["up", "up", "up", "silent", "fenced", "gone"]) for n in IDS})


QUORUMS = st.lists(st.sampled_from((*IDS, 101)), min_size=1, max_size=5, unique=True).flatmap(
    lambda ids: st.integers(0, len(ids) - 1).map(lambda behind: voters(*ids, behind=behind))
)


@settings(max_examples=50)
@given(CLUSTERS, STATES, st.sampled_from(IDS), st.none() | QUORUMS)
def test_yes__is_never_against_the_definitions(
    partitions: list[SimulatedPartition], states: dict[int, str], broker: int, quorum: QuorumHealth | None
) -> None:
    brokers = {n: RestartBroker(n, None, state) for n, state in states.items()}
    facts = RestartFacts(partitions, brokers, kraft=quorum is not None, quorum=quorum)
    check = judge_restart(facts, broker)
    if quorum is not None:
        left = sum(v.node.id != broker and v.status in (NodeStatus.LEADER, NodeStatus.IN_SYNC) for v in quorum.voters)
        loses = left < quorum.majority
        assert any(reason.code is Code.RESTART_LOSES_QUORUM for reason in check.reasons) is loses
        assert not (loses and check.verdict is YES)
    if brokers[broker].is_down:
        assert quorum is not None or check.verdict in (YES, UNKNOWN)
        return
    whole = simulate_failure(partitions, facts.serving, {broker})
    assert (list(check.offline), list(check.under_min_isr)) == (whole.offline, whole.under_min_isr)
    assert check.unknown_min_isr == whole.unknown_min_isr
    if check.verdict is not YES:
        return
    for p in partitions:
        others = {r for r in p.isr if r != broker and states[r] == "up"}
        if p.leader is not None and broker in p.isr:
            assert others
            assert p.min_isr is not None
            assert len(others) >= p.min_isr or len(p.isr) < p.min_isr
        if p.leader is not None:
            assert set(p.replicas) - set(p.isr) <= {broker}


def settled(facts: RestartFacts) -> RestartFacts:
    """All brokers are up and have caught up."""
    partitions = [p._replace(isr=p.replicas, leader=p.replicas[0], eligible=()) for p in facts.partitions]
    return replace(facts, partitions=partitions, brokers=up(*facts.brokers))


@settings(max_examples=50)
@given(CLUSTERS, STATES)
def test_order__has_each_broker_once_and_each_step_is_allowed_after_the_one_before(
    partitions: list[SimulatedPartition], states: dict[int, str]
) -> None:
    facts = RestartFacts(partitions, {n: RestartBroker(n, RACKS[n], state) for n, state in states.items()}, kraft=False)
    order = order_restarts(facts, IDS)
    assert sorted(step.broker.id for step in (*order.steps, *order.never)) == list(IDS)
    then = settled(facts)
    for step in order.steps:
        if step.place is not RestartPlace.START:
            expected = UNKNOWN if step.place is RestartPlace.UNDECIDED else YES
            assert judge_restart(then, step.broker.id).verdict is expected
    for step in order.never:
        assert judge_restart(then, step.broker.id).verdict is NO
        assert step.reasons
    if order.verdict is YES:
        assert order.check is not None
        assert order.check.verdict is YES
        assert not order.never


def test_order__begins_with_brokers_that_are_down_and_ends_with_the_controller() -> None:
    facts = facts_of(
        part(1, 4, 5, isr=(4, 5)),
        part(4, 5, 6, isr=(4, 5)),
        brokers=up(1, 2, 4, 5, 6, b6="fenced"),
        quorum=voters(2, 4, 5),
        controller=2,
    )
    order = order_restarts(facts, facts.brokers)
    assert [step.broker.id for step in order.steps] == [6, 1, 4, 5, 2]
    assert [step.place for step in order.steps][:3] == [RestartPlace.START, RestartPlace.BEHIND, RestartPlace.LATER]
    assert (order.verdict, order.never) == (YES, [])
    assert [step.broker.id for step in order_restarts(facts, [1, 4]).steps] == [1, 4]
    assert order_restarts(facts, [1, 4]).verdict is NO
    assert order_restarts(settled(facts), [1, 4]).steps[0].place is RestartPlace.NEXT


def test_brokers_without_a_safe_restart__are_named_with_the_reason() -> None:
    facts = facts_of(part(1), part(2, 3, least=2), part(3, 4, least=None), part(4, 5, least=1), brokers=up(*IDS))
    order = order_restarts(facts, IDS)
    found = {step.broker.id: [reason.code for reason in step.reasons] for step in (*order.never, *order.steps)}
    assert found[1] == [Code.RESTART_ALWAYS_OFFLINE]
    assert found[2] == [Code.RESTART_ALWAYS_STOPS_WRITES]
    assert found[3] == [Code.RESTART_ALWAYS_STOPS_WRITES, Code.RESTART_MIN_ISR_UNKNOWN]
    assert found[4] == [Code.RESTART_MIN_ISR_UNKNOWN]
    assert order.never[0].reasons[0].params == {"partitions": 1, "topics": ("t",)}
    assert order.verdict is NO
    pair = order_restarts(facts_of(FULL, quorum=voters(1, 2)), [1, 2, 3])
    assert [(step.broker.id, step.reasons[0].code) for step in pair.never] == [
        (1, Code.RESTART_ALWAYS_LOSES_QUORUM),
        (2, Code.RESTART_ALWAYS_LOSES_QUORUM),
    ]


def test_partition_that_gets_more_replicas__is_spared_after_its_reassignment() -> None:
    growing = facts_of(part(1, 2, isr=(1,), least=1), moves={("t", 0): EndingMove(frozenset({2}), (1, 2))})
    order = order_restarts(growing, [1, 2, 3])
    assert order.never == []
    assert [(step.broker.id, step.place) for step in order.steps][-1] == (1, RestartPlace.AFTER_MOVES)
    assert order.steps[-1].reasons[0].code == Code.RESTART_AFTER_MOVES
    assert judge_restart(growing, 1).verdict is NO
    assert judge_restart(growing, 2).verdict is YES


def test_order__of_old_facts__is_unknown() -> None:
    assert order_restarts(facts_of(part(1), metadata_stale=True, stale=["x"]), [1, 2]).verdict is UNKNOWN
