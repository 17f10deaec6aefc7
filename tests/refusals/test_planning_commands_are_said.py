"""What the commands that plan and check plans say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kafkadash.reassign.errors import ReassignmentErrorCode
from tests.domain.topologies import GB
from tests.reassign.test_planning_commands import Desk
from tests.refusals.driving import Case, case, each


class Teller(Desk):
    def told(self, mode: str, *words: str) -> str:
        return "".join(str(part) for part in self.plans(mode, *words))

    def not_written(self) -> str:
        self.path("plan.json.unfinished").mkdir()
        return self.told("leaders")

    def checked(self, *words: str) -> str:
        return "".join(str(part) for part in self.checks(self.brings(("t", 0, [1, 2, 3]), ("t", 1, [4, 1, 2])), *words))

    def with_no_report(self) -> str:
        return self.checked("--report", str(self.path("topology.json")))

    def with_another_report(self) -> str:
        self.plans("drain", "--brokers", "3")
        return self.checked("--report", str(self.path("report.json")))

    def with_disks_alone(self) -> str:
        given = {"brokers": [{"id": id_, "disk_bytes": GB} for id_ in (1, 2)], "topics": []}
        self.path("topology.json").write_text(json.dumps(given))
        return self.told("balance")


@pytest.fixture
def teller(tmp_path: Path) -> Teller:
    return Teller(tmp_path)


@each(
    case(
        ReassignmentErrorCode.OPTION_NO_IDS,
        lambda t: t.told("drain", "--brokers", "3,b"),
        option="--brokers",
        given="3,b",
    ),
    case(
        ReassignmentErrorCode.OPTION_NO_WHOLE_NUMBER,
        lambda t: t.told("set-rf", "--rf", "three"),
        option="--rf",
        given="three",
    ),
    case(
        ReassignmentErrorCode.OPTION_NO_WHOLE_NUMBER,
        lambda t: t.told("balance", "--max-replicas-per-broker", "x"),
        option="--max-replicas-per-broker",
    ),
    case(
        ReassignmentErrorCode.OPTION_NO_SHARE,
        lambda t: t.told("balance", "--disk-limit", "80 %"),
        option="--disk-limit",
    ),
    case(ReassignmentErrorCode.NO_PLAN_GIVEN, lambda t: t.told("finish"), mode="finish"),
    case(ReassignmentErrorCode.FILE_REFUSED, lambda t: t.told("explicit", "--plan", str(t.path("topology.json")))),
    case(ReassignmentErrorCode.FILE_NOT_READ, lambda t: t.told("explicit", "--plan", "/nowhere"), file="/nowhere"),
    case(ReassignmentErrorCode.FILE_NOT_WRITTEN, Teller.not_written, fault="Is a directory"),
    case(
        ReassignmentErrorCode.ONE_FILE_FOR_BOTH,
        lambda t: "".join(
            map(
                str,
                t.types("plan", "--topology", "x", "--mode", "leaders", "--out", "both.json", "--report", "both.json"),
            )
        ),
        file="both.json",
    ),
    case(ReassignmentErrorCode.NO_REPORT_OF_A_PLAN, Teller.with_no_report),
    case(ReassignmentErrorCode.REPORT_OF_ANOTHER_PLAN, Teller.with_another_report),
    case(ReassignmentErrorCode.ROWS_AS_NOW, Teller.checked, partitions="1 partition", are="is"),
    case(ReassignmentErrorCode.DISK_USE_RECKONED, Teller.with_disks_alone, brokers="brokers 1 and 2"),
)
def test_what_is_said(one: Case, teller: Teller) -> None:
    one.check(teller)
