"""Which tasks of kafkadash are overdue, and what is found then."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from kafkadash.core.messages import coded
from kafkadash.findings.facts import IncompleteFact, ProductFacts, ReceiverFact
from kafkadash.findings.judgement import evaluate_product
from kafkadash.findings.kinds import FindingCode, FindingKind
from kafkadash.findings.product import list_overdue
from kafkadash.watchdog.rules import AUDIT, AUDITED, TaskRound
from tests.findings.well_cluster import NOW, WELL, ago, only

pytestmark = pytest.mark.domain
CODES = {
    "beat": FindingCode.BEAT_SILENT,
    "tick": FindingCode.TICK_SILENT,
    "collect": FindingCode.QUEUE_SILENT,
    "prune": FindingCode.CLEANUP_LATE,
    "dead-man": FindingCode.DEAD_MAN_LATE,
    "audit": FindingCode.AUDIT_SILENT,
}


def rounds(*late: str) -> tuple[TaskRound, ...]:
    """All tasks, those named just past their limits, the others just within."""
    return tuple(
        TaskRound(name, ago(days=1), NOW - timedelta(seconds=task.limit_s + (1 if name in late else -1)))
        for name, task in AUDITED.items()
    )


@pytest.mark.parametrize("name", CODES)
def test_task__past_its_limit__is_found(name: str) -> None:
    assert evaluate_product(ProductFacts(rounds()), NOW).found == ()
    (found,) = evaluate_product(ProductFacts(rounds(name)), NOW).found
    params = {"queue": name} if AUDITED[name].queue else {}
    assert (found.scope, found.message) == (name, coded(CODES[name], **params))


def test_tasks__without_ticks__are_not_found_and_close_nothing() -> None:
    judged = evaluate_product(ProductFacts(rounds("tick", "collect", "jobs", "dead-man")), NOW)
    assert {each.scope for each in judged.found} == {"tick", "dead-man"}
    assert judged.cannot_tell(FindingKind.OWN_TASK, "collect")
    assert not judged.cannot_tell(FindingKind.OWN_TASK, "beat")


def test_task__that_never_ended__is_late_from_when_it_was_expected() -> None:
    new = replace(rounds()[1], expected_at=ago(seconds=59), finished_at=None)
    assert not new.is_overdue(NOW)
    assert replace(new, expected_at=ago(seconds=61)).is_overdue(NOW)
    assert not replace(new, finished_at=ago(days=3)).is_overdue(NOW), "kafkadash was down since"


def test_pages__while_nobody_audits__say_that_alone() -> None:
    assert [each.scope for each in list_overdue(list(rounds(*AUDITED)), NOW)] == [AUDIT]
    assert [each.scope for each in list_overdue(list(rounds("collect", "execute")), NOW)] == ["collect", "execute"]


def test_receiver__that_fails_for_ten_minutes__is_found() -> None:
    def found(minutes: float) -> list[tuple[str, FindingCode | str]]:
        receiver = ReceiverFact(7, "on-call", ago(minutes=minutes))
        return [(each.scope, each.message.code) for each in evaluate_product(ProductFacts((), (receiver,)), NOW).found]

    assert found(9) == []
    assert found(11) == [("7", FindingCode.RECEIVER_FAILS)]


def test_cluster__never_read_completely_in_ten_minutes__is_found() -> None:
    kinds = ("groups", "quorum")
    well = replace(WELL, incomplete=IncompleteFact(kinds, ago(minutes=11)))
    assert only(well) == (FindingKind.NEVER_READ, "", coded(FindingCode.NEVER_COMPLETE, sources=kinds))
    assert only(replace(well, kraft=False))[2].params["sources"] == ("groups",)
