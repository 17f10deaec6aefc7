"""Each process of the demo gets the secrets it needs, and a server gets none."""

from __future__ import annotations

import sys
from pathlib import Path

import psutil
import pytest

from kafkadash.embedded.process import SECRET_NAMES, spawn
from kafkadash.ops.demo import services
from kafkadash.ops.demo.folder import Folder

SLEEPS = ("-c", "import time; time.sleep(600)")
GIVEN = {name: f"value of {name}" for name in SECRET_NAMES}
QUEUE = {"DATABASE_URL", "REDIS_URL"}
NEEDED = {"pipeline": set(), "beat": QUEUE, "worker-tick": set(SECRET_NAMES) - {"FIELD_KEYS"}}


def secrets_of(pid: int) -> set[str]:
    return {name for name, value in psutil.Process(pid).environ().items() if name in SECRET_NAMES and value}


@pytest.mark.parametrize(
    "service", [services.web(1), *services.workers_and_beat(), services.pipeline("file:///x")], ids=lambda one: one.name
)
def test_a_process__gets_only_the_secrets_it_needs(service: services.Service, tmp_path: Path) -> None:
    sleeping = services.Service(service.name, SLEEPS, service.stage, service.secrets)
    child = services.Kept(sleeping, Folder(tmp_path), GIVEN, print).start()
    try:
        assert secrets_of(child.pid) == NEEDED.get(service.name, set(SECRET_NAMES))
    finally:
        child.kill()


def test_a_server__gets_no_secret_of_its_starter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in GIVEN.items():
        monkeypatch.setenv(name, value)
    child = spawn(tmp_path, "server", [sys.executable, *SLEEPS], log=tmp_path / "log")
    try:
        assert secrets_of(child.pid) == set()
    finally:
        child.kill()
