"""`manage.py playground` without any database: what it prints, and its exit codes."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest
from django.core.management import CommandError, call_command

from kafkadash.ops.management.commands import playground
from kafkadash.playground.cluster import Playground
from tests.waiting import wait_until

pytestmark = pytest.mark.xdist_group("own-playground")

ROOT = Path(__file__).parents[2]


def command(folder: Path, *args: str) -> list[str]:
    return [sys.executable, str(ROOT / "manage.py"), "playground", "--folder", str(folder), *args]


def environment() -> dict[str, str]:
    """No database and no Valkey are configured."""
    return {key: value for key, value in os.environ.items() if key not in ("DATABASE_URL", "REDIS_URL")}


def call(folder: Path, *args: str) -> tuple[int, str, str]:
    """The command in this process: exit code, what it printed, what it printed as errors.

    Nodes that it starts belong to this process; as detached ones they would be ended and started again by whoever
    wants the cluster next.
    """
    out, err = io.StringIO(), io.StringIO()
    attached = mock.patch.object(playground, "Playground", lambda folder, **said: Playground(folder, say=said["say"]))
    try:
        with attached:
            call_command("playground", "--folder", str(folder), *args, stdout=out, stderr=err)
    except SystemExit as ended:
        return int(ended.code or 0), out.getvalue(), err.getvalue()
    return 0, out.getvalue(), err.getvalue()


def test_without_a_database_and_a_playground_it_is_one_sentence(tmp_path: Path) -> None:
    done = subprocess.run(
        command(tmp_path, "status"), capture_output=True, text=True, env=environment(), timeout=120, check=False
    )
    assert done.returncode == 1
    assert done.stderr == f"CommandError: No playground in {tmp_path}: start one with `playground up`.\n"


def test_down_where_nothing_runs_is_no_error(tmp_path: Path) -> None:
    assert call(tmp_path, "down") == (0, "", "")


def test_status_and_the_ways_to_stop_and_start_a_broker(whole: Playground) -> None:
    _, stopped, _ = call(whole.folder, "stop-broker", "3")
    assert "stopped" in stopped.splitlines()[3]
    with pytest.raises(CommandError, match=r"Node 3 does not run\."):
        call(whole.folder, "stop-broker", "3")
    call(whole.folder, "start-broker", "3")
    pid = next(node.pid for node in whole.status() if node.node_id == 3)
    _, status, _ = call(whole.folder, "status")
    assert f" {pid} " in status.splitlines()[3]


def test_a_tools_output_and_exit_code_are_its_own(whole: Playground) -> None:
    code, out, _ = call(whole.folder, "tool", "cluster", "--", "cluster-id")
    assert (code, out.strip()) == (0, f"Cluster ID: {whole.cluster.cluster_id}")
    direct = whole.tool("reassign", ["--no-such-option"])
    assert direct.returncode != 0
    passed_on = call(whole.folder, "tool", "reassign", "--", "--no-such-option")
    assert passed_on == (direct.returncode, direct.stdout, direct.stderr)


def test_load_fills_and_then_produces_until_it_is_told_to_stop(whole: Playground) -> None:
    args = ["load", "--topics", "1", "--partitions", "2", "--rf", "1", "--mb", "1", "--rate", "100000"]
    process = subprocess.Popen(
        command(whole.folder, *args, "--prefix", "typed"), env=environment(), stdout=subprocess.PIPE, text=True
    )
    try:
        wait_until(lambda: "typed-1" in whole.tool("topics", ["--list"]).stdout, "the topic is there", 60)
        assert process.stdout is not None
        assert "1 MiB produced" in process.stdout.readline()
        assert "until Ctrl-C" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0
    assert rest.startswith("Produced ")
