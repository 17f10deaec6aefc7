"""Each process of the demo gets the secrets it needs, and a server gets none."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kafkadash.embedded.process import SECRET_NAMES, Child, spawn
from kafkadash.ops.demo import services
from kafkadash.ops.demo.folder import Folder
from tests.waiting import wait_until

NAMES = "import os; print(*(name for name, value in os.environ.items() if value))"
GIVEN = {name: f"value of {name}" for name in SECRET_NAMES}
QUEUE = {"DATABASE_URL", "REDIS_URL"}
NEEDED = {"pipeline": set(), "beat": QUEUE, "worker-tick": set(SECRET_NAMES) - {"FIELD_KEYS"}}


def secrets_of(child: Child) -> set[str]:
    """Those that the process said it has; it has ended then."""
    wait_until(lambda: not child.alive(), "the process ended", 30)
    child.stop()
    assert child.log is not None
    return set(child.log.read_text(encoding="utf-8").split()) & set(SECRET_NAMES)


@pytest.mark.parametrize(
    "service", [services.web(1), *services.workers_and_beat(), services.pipeline("file:///x")], ids=lambda one: one.name
)
def test_a_process__gets_only_the_secrets_it_needs(service: services.Service, tmp_path: Path) -> None:
    telling = services.Service(service.name, ("-c", NAMES), service.stage, service.secrets)
    child = services.Kept(telling, Folder(tmp_path), GIVEN, print).start()
    assert secrets_of(child) == NEEDED.get(service.name, set(SECRET_NAMES))


def test_a_server__gets_no_secret_of_its_starter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in GIVEN.items():
        monkeypatch.setenv(name, value)
    child = spawn(tmp_path, "server", [sys.executable, "-c", NAMES], log=tmp_path / "log")
    assert secrets_of(child) == set()
