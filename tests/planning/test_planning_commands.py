"""``manage.py plan``, ``check-plan`` and ``export-topology``: files, exit codes, and what a terminal shows."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import time_machine
from django.core.management import call_command

from kafkadash.changes.plan import PartitionMove, PlanErrorCode
from kafkadash.clusters.models import Cluster
from kafkadash.core.messages import message_cause, message_text
from kafkadash.monitoring.models import CollectorRun
from kafkadash.planning.management.commands import plan as plan_command
from kafkadash.planning.problem_codes import RuleCode
from kafkadash.planning.solver.request_problems import PlanAnswer
from kafkadash.planning.topology import ClusterTopology, read_topology, write_topology
from tests.factories import NOW, ClusterFactory, TopicFactory, watched
from tests.planning.topologies import broker, topology

ROOT = Path(__file__).parents[2]
PLACED = {"t": [[1, 2, 3], [3, 1, 2], [4, 5, 6]], "u": [[6, 4, 2], [1, 2, 3]]}
CLUSTER = topology(PLACED, size=1000, min_isr=2)


class Desk:
    """A folder with an exported topology, and somebody who types."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.gives(CLUSTER)

    def gives(self, cluster: ClusterTopology) -> None:
        self.path("topology.json").write_bytes(write_topology(cluster))

    def path(self, name: str) -> Path:
        return self.folder / name

    def brings(self, *rows: tuple[str, int, Sequence[int]]) -> str:
        entries = [{"topic": topic, "partition": number, "replicas": list(to)} for topic, number, to in rows]
        self.path("brought.json").write_text(json.dumps({"version": 1, "partitions": entries}))
        return str(self.path("brought.json"))

    def types(self, command: str, *words: str) -> tuple[int, str, str]:
        """Exit code, what was printed, and what was said on the standard error."""
        out, err = io.StringIO(), io.StringIO()
        try:
            call_command(command, *words, stdout=out, stderr=err)
        except SystemExit as exit_:
            return int(exit_.code or 0), out.getvalue(), err.getvalue()
        return 0, out.getvalue(), err.getvalue()

    def plans(self, mode: str, *words: str) -> tuple[int, str, str]:
        files = ("--out", str(self.path("plan.json")), "--report", str(self.path("report.json")))
        return self.types("plan", "--topology", str(self.path("topology.json")), "--mode", mode, *words, *files)

    def checks(self, plan: str, *words: str) -> tuple[int, str, str]:
        return self.types("check-plan", "--topology", str(self.path("topology.json")), "--plan", plan, *words)

    @property
    def plan(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.path("plan.json").read_text())["partitions"]
        return found

    @property
    def report(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.path("report.json").read_text())
        return found

    @property
    def files(self) -> set[str]:
        return {path.name for path in self.folder.iterdir()}

    def runs_the_plan(self) -> None:
        """The topology as it is when all of the plan is done."""
        given = json.loads(self.path("topology.json").read_text())
        targets = {(row["topic"], row["partition"]): row["replicas"] for row in self.plan}
        for topic in given["topics"]:
            for p in topic["partitions"]:
                p["replicas"] = targets.get((topic["name"], p["partition"]), p["replicas"])
                p["isr"], p["leader"] = p["replicas"], p["replicas"][0]
        self.path("topology.json").write_text(json.dumps(given))


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_a_plan__is_a_file_of_kafkas_a_report_and_a_table(desk: Desk) -> None:
    code, shown, said = desk.plans("drain", "--brokers", "3")
    assert (code, said) == (0, "")
    moved = {(row["topic"], row["partition"]) for row in desk.plan}
    assert moved == {("t", 0), ("t", 1), ("u", 1)}
    assert not any(3 in row["replicas"] for row in desk.plan)
    report = desk.report
    assert (report["moves"], report["bytes_moved"], report["lower_bound"], report["ratio"]) == (3, 3000, 3000, 1.0)
    assert report["proven_least"] is True
    assert report["certificate"]["bound"] == 3000
    three = next(one for one in report["brokers"] if one["id"] == 3)
    assert three["replicas"] == {"before": 3, "after": 0}
    assert len(report["plan_sha256"]) == 64
    assert "drain: 3 of 5 partitions change, 3 new replicas, 3.0 kB to copy." in shown
    assert "Proven least movement: 3.0 kB, bound 3.0 kB." in shown
    assert f"plan_sha256 {report['plan_sha256']}" in shown
    heads = [line.split()[:2] for line in shown.splitlines() if line.startswith(("rack ", "broker "))]
    assert heads == [["rack", "brokers"], ["broker", "rack"]]


def test_what_brokers_hold_before_and_after__adds_up(desk: Desk) -> None:
    desk.plans("add", "--brokers", "5")
    report = desk.report
    for figure in ("replicas", "leaders"):
        before, after = (sum(one[figure][when] for one in report["brokers"]) for when in ("before", "after"))
        assert before == after == sum(one[figure]["after"] for one in report["racks"])
    for one in report["brokers"]:
        assert one["disk"]["peak"] == one["disk"]["before"] + one["bytes_in"]
        assert one["disk"]["after"] - one["disk"]["before"] == one["bytes"]["after"] - one["bytes"]["before"]


def test_how_long_it_takes_at_least(desk: Desk) -> None:
    desk.plans("explicit", "--plan", desk.brings(("t", 0, [1, 2, 6]), ("u", 1, [1, 2, 6])))
    makespan = desk.report["makespan"]
    assert (makespan["broker"], makespan["direction"], makespan["bound_bytes"]) == (6, "in", 2000)
    assert makespan["at"][1] == {"bytes_per_s": 50_000_000, "seconds": 2000 / 50_000_000}
    assert makespan["waves"] == {"moves_at_once": 5, "most_moves_of_a_broker": 2, "waves": 1}


def test_planning_what_is_done__moves_nothing(desk: Desk) -> None:
    for mode, words in (("drain", ("--brokers", "3")), ("balance", ()), ("repair-racks", ()), ("leaders", ())):
        desk.gives(CLUSTER)
        assert desk.plans(mode, *words)[0] == 0
        desk.runs_the_plan()
        code, shown, _ = desk.plans(mode, *words)
        assert (code, desk.plan, desk.report["moves"]) == (0, [], 0), mode
        assert f"{mode}: nothing to move." in shown


def test_a_brought_plan__is_planned_and_what_is_left_of_it_is_finished(desk: Desk) -> None:
    brought = desk.brings(("t", 0, [4, 2, 3]), ("u", 0, [6, 4, 2]))
    assert desk.plans("explicit", "--plan", brought)[0] == 0
    assert [row["replicas"] for row in desk.plan] == [[4, 2, 3]]
    assert desk.report["certificate"] is None
    desk.runs_the_plan()
    code, shown, _ = desk.plans("finish", "--plan", brought)
    assert (code, desk.plan) == (0, [])
    assert "already have their target replicas" in shown


def test_the_replication_factor_of_a_brought_plan__changes_where_that_is_asked_for(desk: Desk) -> None:
    brought = desk.brings(("t", 0, [1, 2]))
    assert desk.plans("explicit", "--plan", brought)[0] == 2
    assert desk.plans("explicit", "--plan", brought, "--rf", "2")[0] == 0


def test_who_may_be_given_replicas_can_be_bounded(desk: Desk) -> None:
    assert desk.plans("drain", "--brokers", "3", "--with", "6")[0] == 0
    assert {tuple(sorted(row["replicas"])) for row in desk.plan} == {(1, 2, 6)}
    assert desk.plans("replace", "--brokers", "3", "--with", "6")[0] == 0
    assert {tuple(sorted(row["replicas"])) for row in desk.plan} == {(1, 2, 6)}


def test_the_last_of_a_rack__can_be_drained_where_fewer_racks_are_accepted(desk: Desk) -> None:
    code, _, said = desk.plans("drain", "--brokers", "3,6")
    last = message_cause(PlanErrorCode.LAST_OF_A_RACK, brokers=(3, 6), racks=("c",), fewer=((5, 2, 3),))
    assert (code, said[: len(last)]) == (2, last)
    assert desk.plans("drain", "--brokers", "3,6", "--accept-fewer-racks")[0] == 0
    assert desk.report["rack_spread"]["partitions_in_fewer_racks"] == 5


def test_topics_can_be_chosen(desk: Desk) -> None:
    assert desk.plans("drain", "--brokers", "3", "--topics", "[tu]", "--exclude-topics", "t")[0] == 0
    assert [row["topic"] for row in desk.plan] == ["u"]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("drain",), "no-broker-named"),
        (("add",), "no-brokers-to-add"),
        (("replace", "--brokers", "3"), "no-replacements"),
        (("set-rf",), "no-factor"),
        (("set-rf", "--rf", "0"), "factor-too-low"),
        (("set-rf", "--rf", "7"), "factor-too-high"),
        (("explicit",), "no-plan-given"),
        (("finish",), "no-plan-given"),
        (("drain", "--brokers", "9"), "brokers-unknown"),
        (("drain", "--brokers", "1,2,3,4,5,6"), "all-would-be-drained"),
        (("drain", "--brokers", "3", "--with", "9"), "targets-unknown"),
        (("balance", "--topics", "("), "pattern-wrong"),
        (("balance", "--exclude-topics", "["), "pattern-wrong"),
        (("balance", "--topics", "nothing"), "no-topic-chosen"),
        (("balance", "--eps", "5"), "eps-outside"),
        (("balance", "--disk-limit", "80"), "disk-limit-outside"),
        (("balance", "--disk-limit", "0.05"), "disk-limit-passed"),
        (("balance", "--max-replicas-per-broker", "0"), "most-replicas-too-low"),
    ],
    ids=" ".join,
)
def test_what_cannot_be_met__is_one_sentence_and_nothing_is_written(
    desk: Desk, words: Sequence[str], problem: str
) -> None:
    code, shown, said = desk.plans(*words)
    assert (code, shown) == (2, "")
    assert said.rstrip().endswith(f"({problem})")
    assert len(said.splitlines()) == 1
    assert desk.files == {"topology.json"}


def test_each_problem_has_its_sentence(desk: Desk) -> None:
    code, _, said = desk.plans("drain", "--brokers", "9", "--eps", "2", "--topics", "(")
    assert code == 2
    assert len(said.splitlines()) == 3


PARTITION = {"partition": 0, "replicas": [1]}
BROKERS = [{"id": 1, "rack": "a", "disk_bytes": 1000, "alive": True}, {"id": 2, "rack": "b", "alive": True}]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("{", "The topology is not JSON"),
        ("[]", "The topology must be an object."),
        ('{"brokers":7}', "The topology has no list “brokers”."),
        ({"brokers": BROKERS, "topics": [{"name": "t", "partitions": [PARTITION] * 2}]}, "has partition 0 twice"),
        (
            {"brokers": BROKERS, "topics": [{"name": "t", "partitions": [{**PARTITION, "size_bytes": -1}]}]},
            "“size_bytes” must be a whole number, 0 or higher.",
        ),
        (
            {"brokers": [*BROKERS, {"id": 3, "rack": None}], "topics": [{"name": "t", "partitions": [PARTITION]}]},
            "Broker 3 has no rack but others do",
        ),
    ],
    ids=["not JSON", "another shape", "no list", "duplicate partition", "negative size", "mixed racks"],
)
def test_a_topology_that_is_none__is_one_sentence_and_nothing_is_written(
    desk: Desk, given: object, sentence: str
) -> None:
    desk.path("topology.json").write_text(given if isinstance(given, str) else json.dumps(given))
    code, shown, said = desk.plans("balance")
    assert (code, shown) == (2, "")
    assert sentence in said
    assert len(said.splitlines()) == 1
    assert desk.files == {"topology.json"}


def test_a_replica_on_an_unknown_broker_that_is_also_a_target__is_refused(desk: Desk) -> None:
    desk.gives(topology({"t": [[1, 2, 9]]}))
    for words in (("add", "--brokers", "9"), ("replace", "--brokers", "1", "--with", "9")):
        code, _, said = desk.plans(*words)
        unknown = message_cause(PlanErrorCode.BROKERS_UNKNOWN, brokers=(9,), known=(1, 2, 3, 4, 5, 6))
        assert (code, said[: len(unknown)]) == (2, unknown)
    assert desk.plans("drain", "--brokers", "9")[0] == 0


def test_disks_of_which_only_the_whole_is_told__are_judged_by_the_replicas_there(desk: Desk) -> None:
    given = {
        "brokers": [{"id": id_, "rack": None, "disk_bytes": 1000, "alive": True} for id_ in (1, 2, 3)],
        "topics": [{"name": "t", "partitions": [{**PARTITION, "size_bytes": 900}]}],
    }
    desk.path("topology.json").write_text(json.dumps(given))
    code, _, said = desk.plans("balance", "--disk-limit", "0.8")
    passed = {"broker": 1, "share": 0.9, "used": 900, "total": 1000, "over": 1, "limit": 80.0}
    assert (code, message_cause(PlanErrorCode.DISK_LIMIT_PASSED, **passed) in said) == (2, True)
    code, shown, _ = desk.plans("balance", "--disk-limit", "0.95")
    assert code == 0
    assert "computed from replica sizes" in shown


def test_a_plan_that_cannot_be_written_whole__is_not_written_at_all(desk: Desk) -> None:
    for words in (("--report", str(desk.path("none/report.json"))), ("--report", str(desk.path("plan.json")))):
        files = ("--topology", str(desk.path("topology.json")), "--mode", "leaders")
        code, _, _ = desk.types("plan", *files, "--out", str(desk.path("plan.json")), *words)
        assert (code, desk.files) == (2, {"topology.json"})


def test_a_plan_and_its_report__keep_every_rule(desk: Desk) -> None:
    for mode, words in (("drain", ("--brokers", "3")), ("balance", ()), ("leaders", ()), ("set-rf", ("--rf", "4"))):
        assert desk.plans(mode, *words)[0] == 0
        files = str(desk.path("plan.json")), "--report", str(desk.path("report.json"))
        code, shown, _ = desk.checks(*files)
        assert code == 0, (mode, shown)
        assert "violated" not in shown.replace("no rules of", "").replace(" violated\n", "\n")
        assert message_text(RuleCode.PLAN_OF_REPORT) in shown


def test_a_plan_that_breaks_a_rule_of_the_checker__is_none(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = PlanAnswer((PartitionMove("t", "id-t", 0, (1, 2, 3), (1, 2, 2)),))
    monkeypatch.setattr(plan_command, "plan", lambda *_: wrong)
    code, shown, said = desk.plans("balance")
    assert (code, shown, desk.files) == (2, "", {"topology.json"})
    assert said.startswith("The plan violates the rule “")


def test_another_plan_than_that_of_the_report__is_found(desk: Desk) -> None:
    desk.plans("drain", "--brokers", "3")
    other = desk.brings(("t", 0, [1, 2, 6]))
    code, shown, _ = desk.checks(other, "--report", str(desk.path("report.json")))
    assert code == 1
    assert f"violated    {message_text(RuleCode.PLAN_OF_REPORT)}" in shown
    assert "violated    counts" in shown


def test_a_bound_that_the_prices_do_not_prove__is_found(desk: Desk) -> None:
    desk.plans("drain", "--brokers", "3")
    report = desk.report
    report["certificate"]["bound"] += 1
    desk.path("report.json").write_text(json.dumps(report))
    code, shown, _ = desk.checks(str(desk.path("plan.json")), "--report", str(desk.path("report.json")))
    assert code == 1
    assert "violated    least movement" in shown


def test_a_brought_plan_with_a_fault__breaks_a_rule(desk: Desk) -> None:
    code, shown, _ = desk.checks(desk.brings(("t", 0, [1, 2, 9]), ("x", 0, [1]), ("t", 2, [4, 5, 6])))
    assert code == 1
    assert "violated    eligible brokers" in shown
    assert "violated    current assignment" in shown
    assert message_cause(PlanErrorCode.SOME_AS_ASKED, partitions=1) in shown


def test_a_file_that_is_no_plan__cannot_be_checked(desk: Desk) -> None:
    desk.path("brought.json").write_text("{")
    for words in ((), ("--report", str(desk.path("topology.json")))):
        code, shown, said = desk.checks(str(desk.path("brought.json")), *words)
        assert (code, shown, len(said.splitlines())) == (2, "", 1)


def test_the_same_input__gives_the_same_plan_whatever_the_order_of_sets(desk: Desk) -> None:
    placed = [[1 + n % 6, 1 + (n + 1 + n % 2) % 6, 1 + (n + 3 + n % 3) % 6] for n in range(60)]
    distinct = [row for row in placed if len(set(row)) == 3]
    desk.gives(topology({f"topic-{n}": [row] for n, row in enumerate(distinct)}, [*(broker(n) for n in range(1, 7))]))
    digests = set()
    for seed in ("1", "2"):
        files = "--topology", str(desk.path("topology.json")), "--report", str(desk.path(f"report-{seed}.json"))
        command = [sys.executable, "manage.py", "plan", "--mode", "balance", *files]
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, timeout=120)
        digests.add(json.loads(desk.path(f"report-{seed}.json").read_text())["plan_sha256"])
    assert len(digests) == 1


def test_whoever_reads_may_stop_reading(desk: Desk) -> None:
    brokers = [broker(n) for n in range(1, 2_000)]  # more lines than a pipe holds
    desk.gives(topology({"t": [[n, n + 1] for n in range(1, 1_999)]}, brokers))
    command = [sys.executable, "manage.py", "plan", "--mode", "leaders", "--topology", str(desk.path("topology.json"))]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        assert running.stdout.readline().startswith(b"leaders: ")
        running.stdout.close()
        assert (running.stderr.read(), running.wait(timeout=60)) == (b"", 0)


@pytest.fixture
def demo(db: None) -> Iterator[Cluster]:
    with time_machine.travel(NOW, tick=False):
        cluster = watched("demo")
        TopicFactory.create(cluster=cluster, name="orders")
        yield cluster


def test_an_exported_topology__can_be_planned_and_its_age_is_said(desk: Desk, demo: Cluster) -> None:
    code, shown, said = desk.types("export-topology", "demo", "--out", str(desk.path("export.json")))
    assert (code, shown) == (0, "")
    assert "orders" in read_topology(desk.path("export.json").read_bytes()).topics
    assert "assignment: as of 2026-11-21" in said
    code, shown, _ = desk.types("export-topology", "demo")
    assert (code, shown.encode()) == (0, desk.path("export.json").read_bytes())


def test_what_was_read_long_ago__is_said_to_be_old(desk: Desk, demo: Cluster) -> None:
    CollectorRun.objects.filter(cluster=demo).update(succeeded_at=NOW - timedelta(hours=2))
    _, _, said = desk.types("export-topology", "demo")
    assert "2 h ago (stale)" in said


@pytest.mark.django_db
def test_a_cluster_that_is_not_known_or_was_never_read__is_one_sentence(desk: Desk) -> None:
    ClusterFactory.create(slug="new", name="New")
    for slug, sentence in (("none", "There is no cluster"), ("new", "No data about New has been collected yet.")):
        code, shown, said = desk.types("export-topology", slug, "--out", str(desk.path("export.json")))
        assert (code, shown, len(said.splitlines())) == (2, "", 1)
        assert sentence in said
        assert desk.files == {"topology.json"}
