"""The child process that makes a plan: its files, its lines, its end."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kafkadash.changes.plan import PlanErrorCode, hash_artifact, read_rows
from kafkadash.core.json_columns import unpack_dataclass
from kafkadash.planning.impact import PlanImpact
from kafkadash.planning.problem_codes import FileErrorCode, FilePart
from kafkadash.planning.topology import ClusterTopology, write_topology
from tests.planning.topologies import topology
from tests.test_architecture import FOREIGN_TO_RULES, pure_modules

ROOT = Path(__file__).parents[2]
CLUSTER = topology({"t": [[1, 2, 3], [3, 1, 2]]})


def given(
    folder: Path, request: dict[str, Any], upload: bytes = b"", cluster: ClusterTopology = CLUSTER, **more: object
) -> None:
    """``more``: beside the request itself."""
    (folder / "request.json").write_text(json.dumps({"format": 2, "request": request, **more}))
    (folder / "topology.json").write_bytes(write_topology(cluster))
    if upload:
        (folder / "upload.json").write_bytes(upload)


def run(folder: Path) -> tuple[int, dict[str, Any], list[dict[str, Any]]]:
    """Exit code, result and the lines it printed."""
    command = [sys.executable, "-m", "kafkadash.planning.plan_process", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert done.stderr == ""
    result = json.loads((folder / "result.json").read_text())
    return done.returncode, result, [json.loads(line) for line in done.stdout.splitlines()]


def test_a_drain__leaves_plan_and_result_and_says_how_far_it_is(tmp_path: Path) -> None:
    given(tmp_path, {"mode": "drain", "brokers": [3], "targets": None, "disk_limit": 0.8})
    code, result, lines = run(tmp_path)
    artifact = (tmp_path / "plan.json").read_bytes()
    assert code == 0
    assert [(row.name, row.target) for row in read_rows(artifact)] == [("t-0", (1, 2, 6)), ("t-1", (2, 6, 1))]
    assert (result["rows"], result["sha256"], result["problems"]) == (2, hash_artifact(artifact), [])
    assert unpack_dataclass(PlanImpact, result["impact"]).copied_bytes == 20
    assert all(passed for _, passed, _, _ in result["rules"])
    fractions = [line["fraction"] for line in lines]
    assert fractions == sorted(fractions)
    assert (lines[0]["stage"], lines[-1]) == ("reading the topology", {"stage": "done", "fraction": 1.0})


def test_a_brought_plan_with_problems__lists_them_with_their_lines_and_leaves_no_plan(tmp_path: Path) -> None:
    upload = b'{"version":1,"partitions":[\n{"topic":"t","partition":0,"replicas":[1,2,9]}]}'
    given(tmp_path, {"mode": "explicit"}, upload)
    code, result, _ = run(tmp_path)
    assert code == 2
    assert result["problems"] == [
        {
            "code": PlanErrorCode.BROKER_UNKNOWN,
            "params": {"broker": 9, "entries": 1},
            "line": 2,
            "column": None,
        }
    ]
    assert (result["impact"], result["sha256"], result["problem_count"]) == (None, None, 1)
    assert not (tmp_path / "plan.json").exists()


def test_a_brought_plan__is_compared_with_the_cluster(tmp_path: Path) -> None:
    upload = b'{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[4,2,3]}]}'
    given(tmp_path, {"mode": "explicit", "disk_limit": 0.8}, upload)
    code, result, _ = run(tmp_path)
    assert (code, result["rows"], result["impact"]["partitions_moved"]) == (0, 1, 1)


def test_more_problems_than_anybody_reads__are_counted(tmp_path: Path) -> None:
    entries = b",\n".join(b'{"topic":"t","partition":0,"replicas":[]}' for _ in range(1500))
    given(tmp_path, {"mode": "explicit"}, b'{"version":1,"partitions":[' + entries + b"]}")
    _, result, _ = run(tmp_path)
    assert (len(result["problems"]), result["problem_count"]) == (1000, 1500)


def test_too_little_memory__is_a_problem(tmp_path: Path) -> None:
    upload = b'{"version":1,"partitions":[' + b" " * 80_000_000 + b"]}"
    given(tmp_path, {"mode": "explicit"}, upload, memory_bytes=270_000_000)
    code, result, _ = run(tmp_path)
    assert code == 2
    assert [(problem["code"], problem["params"]) for problem in result["problems"]] == [
        (PlanErrorCode.PLANNER_OUT_OF_MEMORY, {"most": 0.27})
    ]


def test_a_topology_that_is_none__is_a_problem(tmp_path: Path) -> None:
    given(tmp_path, {"mode": "drain", "brokers": [3]})
    (tmp_path / "topology.json").write_text("[]")
    code, result, _ = run(tmp_path)
    [problem] = result["problems"]
    assert (code, problem["code"]) == (2, FileErrorCode.TOPOLOGY_SHAPE)
    assert problem["params"]["field"]["code"] == FilePart.TOPOLOGY


@pytest.mark.parametrize(("mode", "format_"), [("shuffle", 2), ("drain", 7)])
def test_a_request_of_another_version__is_a_fault_and_no_plan(tmp_path: Path, mode: str, format_: int) -> None:
    given(tmp_path, {"mode": mode, "brokers": [3]}, b'{"version":1,"partitions":[]}', format=format_)
    command = [sys.executable, "-m", "kafkadash.planning.plan_process", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 1
    assert "ValueError" in done.stderr
    assert not (tmp_path / "result.json").exists()


def test_it_loads_the_domain_and_nothing_else() -> None:
    code = "import sys, kafkadash.planning.plan_process; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    loaded = set(done.stdout.split())
    assert not {name.split(".")[0] for name in loaded} & set(FOREIGN_TO_RULES)
    ours = {name for name in loaded if name.startswith("kafkadash.")}
    packages = {name for name in ours if any(other.startswith(f"{name}.") for other in ours)}
    assert ours - packages - set(pure_modules()) == {"kafkadash.planning.plan_process"}


def test_nobody_reads_what_it_says_any_more__it_ends_without_a_plan(tmp_path: Path) -> None:
    given(tmp_path, {"mode": "drain", "brokers": [3]})
    command = [sys.executable, "-m", "kafkadash.planning.plan_process", str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdout.close()
        assert child.stderr.read() == b""
        assert child.wait(60) == 1
    assert not (tmp_path / "result.json").exists()
