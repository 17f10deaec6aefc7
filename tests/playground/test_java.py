"""Java: on PATH when it is new enough, else the wheel's."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkadash.embedded.process import ServerError
from kafkadash.playground import java
from kafkadash.playground.java import AOT_MAJOR, find_java


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def put_java(folder: Path, version: str, exit_code: int = 0) -> None:
    script = folder / "java"
    words = f'openjdk version "{version}" 2020-01-01\nOpenJDK Runtime Environment (build {version}+1)\n'
    script.write_text(f"#!/bin/sh\nprintf '%s' '{words}' >&2\nexit {exit_code}\n")
    script.chmod(0o755)


@pytest.mark.parametrize("version", ["17.0.1", "21", "25.0.2"])
def test_a_new_enough_java_on_path_is_taken(path: Path, version: str) -> None:
    put_java(path, version)
    found = find_java()
    assert found.path == path / "java"
    assert found.major == int(version.partition(".")[0])
    assert found.version == f"{version}+1"


@pytest.mark.parametrize("version", ["11.0.20", "1.8.0_402"])
def test_an_old_java_on_path_is_passed_over_for_the_wheels(path: Path, version: str) -> None:
    put_java(path, version)
    found = find_java()
    assert found.path != path / "java"
    assert found.major >= AOT_MAJOR


def test_a_java_that_does_not_run_is_passed_over(path: Path) -> None:
    put_java(path, "17.0.1", exit_code=1)
    assert find_java().path != path / "java"


def test_no_java_at_all_is_one_sentence(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "_wheel_java", lambda: None)
    with pytest.raises(ServerError, match="No Java 17 or newer on PATH"):
        find_java()
