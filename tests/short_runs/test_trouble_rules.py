"""Rules by which a short run needs a person."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from kafkadash.changes.state_machine import ChangeState
from kafkadash.changes.troubles import PATIENCE, TroubleKind
from kafkadash.core.messages import PlainReason
from kafkadash.findings.causes import _TROUBLES
from kafkadash.short_runs.reasons import ClusterUnread, RequestNotSent, ShortRunReasonCode
from kafkadash.short_runs.troubles import ShortRunStanding, judge_short_run
from tests.factories import NOW

HOUR_AGO, LONG_AGO = NOW - timedelta(hours=1), NOW - PATIENCE - timedelta(seconds=1)
QUEUED = ShortRunStanding(7, ChangeState.QUEUED, turn_at=HOUR_AGO, state_since=HOUR_AGO, looked_at=NOW)
RUNNING = replace(QUEUED, state=ChangeState.EXECUTING, started_at=HOUR_AGO, done_at=NOW, left=3)
UNREAD, FAULT = ClusterUnread("no broker"), PlainReason(ShortRunReasonCode.STEP_FAILED)
BLIND = {"error": UNREAD, "looked_at": LONG_AGO}


@pytest.mark.parametrize(
    ("run", "fields", "kinds"),
    [
        (QUEUED, {}, set()),
        (QUEUED, {"blocked_at": NOW - PATIENCE}, {TroubleKind.BLOCKED}),
        (QUEUED, {"blocked_at": NOW}, set()),
        (QUEUED, BLIND, {TroubleKind.UNREAD}),
        (QUEUED, {**BLIND, "blocked_at": HOUR_AGO}, {TroubleKind.BLOCKED, TroubleKind.UNREAD}),
        (QUEUED, {"error": FAULT, "looked_at": None}, {TroubleKind.STALLED}),
        (QUEUED, {"error": FAULT, "looked_at": None, "turn_at": NOW}, set()),
        (RUNNING, {}, set()),
        (RUNNING, BLIND, {TroubleKind.UNREAD}),
        (RUNNING, {"error": RequestNotSent("no broker"), "done_at": LONG_AGO}, {TroubleKind.STALLED}),
        (RUNNING, {"done_at": None}, {TroubleKind.STALLED}),
        (RUNNING, {"done_at": None, "state_since": NOW}, set()),
        (RUNNING, {"done_at": None, "state": ChangeState.VERIFYING}, {TroubleKind.STALLED}),
        (RUNNING, {"done_at": None, "state": ChangeState.PAUSED}, set()),
        (RUNNING, {**BLIND, "state": ChangeState.PAUSED}, {TroubleKind.UNREAD}),
    ],
)
def test_short_run__needs_a_person_after_ten_minutes(
    run: ShortRunStanding, fields: dict[str, Any], kinds: set[TroubleKind]
) -> None:
    assert {each.kind for each in judge_short_run(replace(run, **fields), NOW)} == kinds


def test_short_run_stands_still__tells_since_when_and_why() -> None:
    found = list(judge_short_run(replace(RUNNING, error=FAULT, done_at=LONG_AGO), NOW))
    assert [(each.number, each.count, each.since, each.why) for each in found] == [(7, 3, LONG_AGO, FAULT)]


def test_every_kind_of_trouble_has_a_place_among_causes() -> None:
    assert sorted(_TROUBLES) == sorted(TroubleKind)
