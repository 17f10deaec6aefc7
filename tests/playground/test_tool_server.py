"""Kafka's tools answer from the shared process as their scripts do. All of them: ``make proof ARGS=tools``."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from unittest import mock

import pytest
from py4j import java_gateway
from pyspark.errors.exceptions.captured import install_exception_handler

from kafkadash.embedded.files import locked
from kafkadash.playground.cluster import Playground
from kafkadash.playground.prepare import prepare_runtime
from tests import tool_server
from tests.embedded_plugin import RUN_FOLDER
from tests.tool_server import BELOW_MAIN, ToolServer, compare_with_script

pytestmark = pytest.mark.xdist_group("own-playground")


def test_tool_server__tool_refuses_an_option__has_its_exit_code_and_trace(whole: Playground) -> None:
    answer = compare_with_script(whole, "topics", "--no-such-option")
    assert answer.returncode == 1
    assert not BELOW_MAIN.search(answer.stderr)


def test_tool_server__spark_was_used_in_this_process__answers_the_same(
    runtime: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark replaces py4j's reader of answers by one that calls Spark's classes where there is an exception."""
    monkeypatch.setattr(java_gateway, "get_return_value", java_gateway.get_return_value)  # put back at the end
    install_exception_handler()
    answer = ToolServer(Path(os.environ[RUN_FOLDER])).run("org.apache.kafka.tools.LogDirsCommand", ["--no-such"], 60.0)
    assert answer.returncode == 1


def test_tool_server__killed__is_started_again(runtime: None) -> None:
    run_folder = Path(os.environ[RUN_FOLDER])
    server = ToolServer(run_folder)
    version = "org.apache.kafka.tools.LogDirsCommand", ["--version"], 60.0
    first = server.run(*version).stdout
    with locked(run_folder / f"{tool_server.NAME}.lock"):  # no other worker waits for an answer
        process = server.process
        assert process is not None
        process.kill()
    assert server.run(*version).stdout == first
    assert server.process is not None
    assert server.process.pid != process.pid


def test_shared_tools__class_archive_is_being_recorded__do_not_wait_for_it(tmp_path: Path, runtime: None) -> None:
    """A new machine formats the storage of its training node before there is a runtime to share."""
    prepared = prepare_runtime(lambda _: None)
    echo = dataclasses.replace(prepared.java, path=Path("/bin/echo"))
    unrecorded = dataclasses.replace(prepared, java=echo, archive=tmp_path / "none")
    with mock.patch.object(tool_server, "prepare_runtime", side_effect=AssertionError("would wait for itself")):
        assert "kafka.tools.StorageTool" in unrecorded.run_class("kafka.tools.StorageTool", [], 10.0).stdout
