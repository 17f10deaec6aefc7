"""A report that is brought back: read as it was written, and nothing in it believed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kafkadash.domain.impact_of import impact_of
from kafkadash.domain.planner.plan import plan
from kafkadash.domain.planner.report import report_of
from kafkadash.domain.planner.report_read import BadReport, proof_in, request_in
from kafkadash.domain.planner.request import BALANCE, DRAIN, LEADERS, PlanRequest, Proof
from tests.domain.topologies import topology

CLUSTER = topology({"t": [[1, 2, 3], [3, 1, 2], [4, 5, 6]]})


def written(request: PlanRequest) -> tuple[dict[str, Any], Proof | None]:
    planned = plan(CLUSTER, request)
    report = report_of(CLUSTER, request, planned, impact_of(planned.rows, CLUSTER))
    return json.loads(json.dumps(report)), planned.proof


@pytest.mark.parametrize(
    "request_",
    [
        PlanRequest(DRAIN, (3,), targets=(6,), disk_limit=0.8, topics=("t",)),
        PlanRequest(BALANCE, eps=0.3, most_replicas=5, pattern="t", excluded="u"),
        PlanRequest(LEADERS),
    ],
    ids=lambda request: request.mode,
)
def test_what_was_written__is_read(request_: PlanRequest) -> None:
    report, proof = written(request_)
    assert (request_in(report), proof_in(report)) == (request_, proof)


@pytest.mark.parametrize("value", [None, -1, 1.5, "x", [[]], {"x": 1}, {"1": "x"}, 2**60])
def test_what_no_planner_writes__is_no_report(value: object) -> None:
    report, proof = written(PlanRequest(DRAIN, (3,)))
    assert proof is not None
    for name in ("moved", "prices", "widened", "outside"):
        if (name, value) not in (("moved", -1), ("outside", {"1": "x"})):
            with pytest.raises(BadReport):
                proof_in({**report, "certificate": {**report["certificate"], name: value}})
    for name in ("mode", "brokers", "pattern", "rebalance"):
        if (name, value) != ("pattern", "x"):
            with pytest.raises(BadReport):
                request_in({**report, "request": {**report["request"], name: value}})
    with pytest.raises(BadReport):
        request_in({**report, "request": {**report["request"], "colour": value}})
    for whole in (value, {**report, "format": value}):
        with pytest.raises(BadReport):
            request_in(whole)
        with pytest.raises(BadReport):
            proof_in(whole)
