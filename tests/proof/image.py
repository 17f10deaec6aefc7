"""Part "image": the Dockerfile's steps in an empty folder, then each service of docker-compose.yml as a process there.

No Docker is needed: what the image holds is copied as ``COPY`` and ``.dockerignore`` say, and packages come from the
lock. PostgreSQL and Valkey are those of the playground. Every service has to pass its own health check.
"""

from __future__ import annotations

import fnmatch
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import yaml
from cryptography.fernet import Fernet

from kafkadash.devtools.embedded.ports import free_port
from kafkadash.devtools.embedded.postgres import EmbeddedPostgres
from kafkadash.devtools.embedded.process import spawn, stop_all
from kafkadash.devtools.embedded.valkey import EmbeddedValkey
from tests.proof.extent import Extent

ROOT = Path(__file__).resolve().parents[2]
READY_S = 240.0
GIVEN = {"ALLOWED_HOSTS": "localhost", "SECRET_KEY": "k" * 50, "POSTGRES_PASSWORD": "p", "REDIS_PASSWORD": "r"}


def prove(folder: Path, extent: Extent) -> bool:
    """Build and start once; a second round would do the same."""
    del extent
    app = build_image(folder / "app")
    postgres, valkey = EmbeddedPostgres(folder / "servers"), EmbeddedValkey(folder / "servers")
    children = [postgres.start(), valkey.start()]
    port = free_port()
    changed = {"DATABASE_URL": postgres.url(), "REDIS_URL": valkey.url(), "KAFKADASH_VAR": str(folder / "var")}
    unhealthy = []
    try:
        services = read_services()
        migrated = run_in(app, services["migrate"]["command"], environment(services["migrate"], changed))
        if migrated.returncode != 0:
            report("migrate", migrated.stdout)
            return False
        report("migrate", "done")
        for name, service in services.items():
            if name != "migrate":
                command = service.get("command") or ["python", "-m", "kafkadash.web", "--host", "127.0.0.1"]
                command = [*command, *(["--port", str(port)] if "kafkadash.web" in command else [])]
                env = environment(service, changed)
                log = folder / f"{name}.log"
                children.append(spawn(folder / "servers", name, in_image(app, command), log=log, cwd=app, env=env))
        for name, service in services.items():
            if name != "migrate" and not becomes_healthy(app, name, service, environment(service, changed), port):
                unhealthy.append(name)
    finally:
        stop_all(reversed(children), 30.0)
    return not unhealthy


def build_image(app: Path) -> Path:
    """Do what the Dockerfile does: install the locked packages, and copy what its COPY lines name."""
    app.mkdir()
    steps = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    for name in ("pyproject.toml", "uv.lock"):
        shutil.copy(ROOT / name, app)
    sync = re.search(r"RUN (uv sync .*)", steps)
    assert sync is not None
    uv = Path(sys.executable).with_name("uv")
    subprocess.run(
        [uv, *shlex.split(sync[1])[1:], "--quiet"],
        cwd=app,
        check=True,
        env={**os.environ, "UV_PROJECT_ENVIRONMENT": str(app / ".venv"), "VIRTUAL_ENV": ""},
    )
    left_out = [line for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").split() if line[0] not in "!*"]
    for source in re.findall(r"^COPY (?!--from|pyproject)(.+) \S+$", steps, re.MULTILINE):
        for name in source.split():
            copy_into(app, name, left_out)
    report("image", f"{sum(path.stat().st_size for path in app.rglob('*') if path.is_file()) / 1e6:,.0f} MB")
    return app


def copy_into(app: Path, name: str, left_out: list[str]) -> None:
    def ignored(folder: str, names: list[str]) -> list[str]:
        inside = Path(folder).relative_to(ROOT)
        return [n for n in names if str(inside / n) in left_out or fnmatch.filter([n], "__pycache__")]

    if (ROOT / name).is_dir():
        shutil.copytree(ROOT / name, app / name, ignore=ignored)
    else:
        shutil.copy(ROOT / name, app)


def read_services() -> dict[str, dict[str, Any]]:
    """Services of the product's own image, by name."""
    found = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))["services"]
    return {name: service for name, service in found.items() if str(service.get("image", "")).startswith("kafkadash:")}


def environment(service: dict[str, Any], changed: dict[str, str]) -> dict[str, str]:
    """Variables as the file gives them, with ``${NAME:?…}`` and ``${NAME:-…}`` filled in, and no others."""
    given = {**GIVEN, "FIELD_KEYS": FIELD_KEY}

    def fill(match: re.Match[str]) -> str:
        return given.get(match[1], match[3] or "")

    own = {
        name: re.sub(r"\$\{(\w+)(:[-?])?([^}]*)\}", fill, str(value)) for name, value in service["environment"].items()
    }
    own |= {name: value for name, value in changed.items() if name in own or name == "KAFKADASH_VAR"}
    return {**own, "HOSTNAME": socket.gethostname(), "HOME": os.environ.get("HOME", "/")}


FIELD_KEY = Fernet.generate_key().decode()


def in_image(app: Path, command: list[str]) -> list[str]:
    return [str(app / ".venv" / "bin" / command[0]), *command[1:]]


def run_in(app: Path, command: list[str], env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    path = {"PATH": f"{app / '.venv' / 'bin'}:{os.environ['PATH']}"}
    return subprocess.run(
        command,
        cwd=app,
        env={**env, **path},
        check=False,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        executable=str(app / ".venv" / "bin" / command[0]) if command[0] == "python" else None,
    )


def becomes_healthy(app: Path, name: str, service: dict[str, Any], env: dict[str, str], port: int) -> bool:
    """Ask the service's own health check until it passes."""
    kind, *test = service["healthcheck"]["test"]
    command = test if kind == "CMD" else ["sh", "-c", test[0].replace("$$", "$")]
    command = [part.replace(":8000", f":{port}") for part in command]
    began = time.monotonic()
    while True:
        done = run_in(app, command, env)
        took = time.monotonic() - began
        if done.returncode == 0:
            report(name, f"healthy after {took:.0f} s")
            return True
        if took > READY_S:
            report(name, f"not healthy: {done.stdout[-500:]}")
            return False
        time.sleep(2)


def report(name: str, text: str) -> None:
    print(f"  {name:16} {text}", flush=True)  # noqa: T201
