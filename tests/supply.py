"""What the product is shipped with: known holes in its packages, and digests of the images of its containers.

``python -m tests.supply audit`` asks the service of pip-audit about each package of uv.lock that the product installs.
Exit code 1 where one has a known hole; a package that nobody could be asked about is a warning.
``python -m tests.supply pin`` writes into docker-compose.yml the digest behind each tag, as its registry tells it.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

ROOT = Path(__file__).resolve().parents[1]
COMPOSE = ROOT / "docker-compose.yml"
TIMEOUT_S = 10
AUDIT_S = 300
DOCKER_HUB = "https://registry-1.docker.io"
MANIFESTS = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
_IMAGE = re.compile(r"^(?P<before>\s+image: )(?P<name>[a-z0-9/_.-]+):(?P<tag>[\w.-]+)(@sha256:[0-9a-f]{64})?\s*$")
_OWN = "kafkadash"


class NotAnswered(Exception):
    """A service said nothing that can be used; ``str()`` says which and why."""


@dataclass(frozen=True, slots=True)
class PackageAudit:
    """``holes``: "package version: ids" of those with known holes. ``unasked``: packages nobody was asked about."""

    holes: Sequence[str]
    unasked: Sequence[str]


def main(arguments: Sequence[str]) -> int:
    commands = {"audit": audit, "pin": pin}
    if len(arguments) != 1 or arguments[0] not in commands:
        _say(f"usage: python -m tests.supply {'|'.join(commands)}")
        return 2
    return commands[arguments[0]]()


def audit() -> int:
    try:
        found = read_audit(_audited())
    except NotAnswered as failure:
        _say(f"WARNING: packages were not audited: {failure}")
        return 0
    if found.unasked:
        _say(f"WARNING: {len(found.unasked)} packages were not audited, as the service does not know them or is away.")
    for hole in found.holes:
        _say(f"Known hole: {hole}")
    return 1 if found.holes else 0


def read_audit(printed: str) -> PackageAudit:
    """From the JSON of pip-audit. Raises NotAnswered."""
    try:
        rows: list[dict[str, Any]] = json.loads(printed)["dependencies"]
    except (ValueError, KeyError, TypeError) as error:
        raise NotAnswered("pip-audit printed no report") from error
    holes = [
        f"{row['name']} {row['version']}: {', '.join(hole['id'] for hole in row['vulns'])}"
        for row in rows
        if row.get("vulns")
    ]
    return PackageAudit(holes, [row["name"] for row in rows if row.get("skip_reason")])


def pin(compose: Path = COMPOSE, registry: str = DOCKER_HUB) -> int:
    lines, failed = compose.read_text(encoding="utf-8").splitlines(keepends=True), False
    digests: dict[str, str] = {}
    for number, line in enumerate(lines):
        found = _IMAGE.match(line)
        if found is None or found["name"] == _OWN:
            continue
        name, tag = found["name"], found["tag"]
        try:
            digests.setdefault(f"{name}:{tag}", image_digest(name, tag, registry))
        except NotAnswered as failure:
            _say(f"WARNING: {name}:{tag} is not pinned: {failure}")
            failed = True
            continue
        lines[number] = f"{found['before']}{name}:{tag}@{digests[f'{name}:{tag}']}\n"
    compose.write_text("".join(lines), encoding="utf-8")
    return 1 if failed else 0


def image_digest(name: str, tag: str, registry: str = DOCKER_HUB) -> str:
    """The digest of what a tag names now, for all platforms. Raises NotAnswered."""
    path = name if "/" in name else f"library/{name}"
    url = f"{registry}/v2/{path}/manifests/{tag}"
    headers = {"Accept": ", ".join(MANIFESTS)}
    try:
        digest = _digest_of(url, headers)
    except HTTPError as refused:
        if refused.code != 401:
            raise NotAnswered(f"{url} answered {refused.code}") from refused
        token = _token(refused.headers.get("WWW-Authenticate", ""))
        try:
            digest = _digest_of(url, {**headers, "Authorization": f"Bearer {token}"})
        except (URLError, TimeoutError) as error:
            raise NotAnswered(f"{url}: {error}") from error
    except (URLError, TimeoutError) as error:
        raise NotAnswered(f"{url}: {error}") from error
    if not re.fullmatch(r"sha256:[0-9a-f]{64}", digest):
        raise NotAnswered(f"{url} told no digest")
    return digest


def _digest_of(url: str, headers: Mapping[str, str]) -> str:
    request = Request(url, headers=dict(headers), method="HEAD")  # noqa: S310  the registry's address
    with urlopen(request, timeout=TIMEOUT_S) as answer:  # noqa: S310
        return str(answer.headers.get("Docker-Content-Digest", ""))


def _token(challenge: str) -> str:
    """What the registry's own challenge asks for (Distribution specification, token authentication)."""
    values = dict(re.findall(r'(\w+)="([^"]*)"', challenge))
    url = f"{values.get('realm', '')}?service={values.get('service', '')}&scope={values.get('scope', '')}"
    try:
        with urlopen(url, timeout=TIMEOUT_S) as answer:  # noqa: S310
            return str(json.load(answer)["token"])
    except (URLError, TimeoutError, ValueError, KeyError) as error:
        raise NotAnswered(f"no token from {url}: {error}") from error


def _audited() -> str:
    """What pip-audit prints of the packages that the product installs. Raises NotAnswered."""
    with TemporaryDirectory() as folder:
        listed = Path(folder) / "requirements.txt"
        tools = Path(sys.executable).parent
        export = ["--frozen", "--no-dev", "--extra", "pipeline", "--no-emit-project", "--quiet"]
        subprocess.run([tools / "uv", "export", *export, "--output-file", listed], cwd=ROOT, check=True)
        how = ["--disable-pip", "--require-hashes", "--progress-spinner", "off", "--format", "json"]
        command: list[str | Path] = [tools / "pip-audit", *how, "--timeout", str(TIMEOUT_S), "--requirement", listed]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=AUDIT_S, check=False)
        except subprocess.TimeoutExpired as late:
            raise NotAnswered(f"no answer within {AUDIT_S} s") from late
    if not done.stdout.strip():
        raise NotAnswered(" ".join(done.stderr.split())[-200:] or f"pip-audit ended with {done.returncode}")
    return done.stdout


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
