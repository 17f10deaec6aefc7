"""Known holes in packages, and digests of images: what the services say, and what is done where they say nothing."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from unittest import mock

import pytest

from tests import supply

DIGEST = f"sha256:{'ab' * 32}"
COMPOSE = "services:\n  db:\n    image: postgres:18.4-alpine\n  own:\n    image: kafkadash:0.1.0\n"


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
    compose.write_text(COMPOSE)
    assert supply.pin(compose, registry) == 0
    pinned = COMPOSE.replace("18.4-alpine", f"18.4-alpine@{DIGEST}")
    assert compose.read_text() == pinned
    assert supply.pin(compose, registry) == 0
    assert compose.read_text() == pinned


def test_an_image_without_an_answer_stays_and_is_told(
    registry: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    compose = tmp_path / "docker-compose.yml"
    compose.write_text(COMPOSE.replace("18.4-alpine", "1"))
    assert supply.pin(compose, registry) == 1
    assert compose.read_text() == COMPOSE.replace("18.4-alpine", "1")
    assert "WARNING: postgres:1 is not pinned" in capsys.readouterr().out


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
