"""Kafka's tools answer from the shared process as their scripts do. All of them: ``make proof ARGS=tools``."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkadash.playground.cluster import Playground
from tests.tool_server import BELOW_MAIN, ToolServer, compare_with_script

pytestmark = pytest.mark.xdist_group("own-playground")


def test_tool_server__describes_configs__prints_what_the_script_prints(whole: Playground) -> None:
    """Scala's Console, which this tool prints with, keeps the stream that it first saw."""
    answer = compare_with_script(whole, "configs", "--describe", "--entity-type", "brokers", "--entity-name", "1")
    assert answer.returncode == 0
    assert "Dynamic configs for broker 1" in answer.stdout


def test_tool_server__tool_refuses_an_option__has_its_exit_code_and_trace(whole: Playground) -> None:
    answer = compare_with_script(whole, "topics", "--no-such-option")
    assert answer.returncode == 1
    assert not BELOW_MAIN.search(answer.stderr)


def test_tool_server__killed__is_started_again(tmp_path: Path, runtime: None) -> None:
    server = ToolServer(tmp_path)
    version = "org.apache.kafka.tools.LogDirsCommand", ["--version"], 60.0
    try:
        first = server.run(*version).stdout
        process = server.process
        assert process is not None
        process.kill()
        assert server.run(*version).stdout == first
        assert server.process is not None
        assert server.process.pid != process.pid
    finally:
        server.stop()
