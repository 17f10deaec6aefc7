"""README.md is short, its commands work, its pictures exist and its figures are measured; docs/install.md likewise."""

from __future__ import annotations

import io
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from cryptography.fernet import Fernet
from django.core.management import call_command, get_commands, load_command_class

from kafkadash.accounts.models import User
from kafkadash.clusters.models import Cluster
from tests import doc_links, measured, pictures

README, INSTALL = doc_links.ROOT / "README.md", doc_links.ROOT / "docs" / "install.md"
LONGEST = 90
MOST_FIGURES = 6


def commands_of(path: Path, program: str) -> list[list[str]]:
    """Arguments of each command of ``program`` that has any, in code spans and code blocks."""
    text = path.read_text(encoding="utf-8")
    lines = [line for block in doc_links.FENCE.findall(text) for line in block.replace("\\\n", "").splitlines()]
    lines += doc_links.CODE.findall(doc_links.FENCE.sub("", text))
    found = [line.partition(f"{program} ")[2] for line in lines if f"{program} " in line]
    return [shlex.split(rest, comments=True) for rest in found]


def run_management_command(arguments: list[str]) -> str:
    out = io.StringIO()
    call_command(*arguments, stdout=out)
    return out.getvalue()


def test_readme__lines__are_few() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= LONGEST


def test_readme__links_and_paths__exist() -> None:
    assert list(doc_links.faults_of(README)) == []


def test_readme__pictures__exist_and_are_small() -> None:
    shown = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", README.read_text(encoding="utf-8"))
    assert len(shown) == 3
    for picture in shown:
        assert (README.parent / picture).stat().st_size < pictures.MOST_BYTES


def test_readme__figures__are_those_of_the_measured_page() -> None:
    page = measured.read_page(measured.PAGE.read_text(encoding="utf-8"))
    figures = measured.between(README.read_text(encoding="utf-8"), "figures")
    assert figures == measured.readme_table(page)
    assert len(measured.README_FIGURES) <= MOST_FIGURES


def test_readme__words_of_its_figures__name_existing_benches() -> None:
    targets = {f"make bench-{bench}" for bench, _ in measured.README_FIGURES}
    assert [missing for target in targets for missing in doc_links.unknown_targets(target)] == []


@pytest.mark.parametrize("target", sorted({arguments[0] for arguments in commands_of(README, "make")}))
def test_readme__make_target__can_be_made(target: str) -> None:
    done = subprocess.run(["make", "--dry-run", target], cwd=README.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", [README, INSTALL], ids=lambda page: page.name)
def test_documented_management_command__takes_its_arguments(page: Path) -> None:
    documented = commands_of(page, "manage.py")
    assert documented
    for name, *arguments in documented:
        parser = load_command_class(get_commands()[name], name).create_parser("manage.py", name)
        if arguments:
            parser.parse_args(arguments)


@pytest.mark.django_db
def test_readme__first_user__is_a_superuser_with_a_password() -> None:
    [command] = [each for each in commands_of(README, "manage.py") if each[0] == "user"]
    printed = run_management_command(command)
    user = User.objects.get(username=command[2])
    assert user.is_superuser
    assert any(user.check_password(word) for word in printed.split() if len(word) >= 16)


@pytest.mark.django_db
@pytest.mark.parametrize("page", [README, INSTALL], ids=lambda page: page.name)
def test_documented_registration__adds_the_cluster(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLIENT_SECRET", "not-told")
    registrations = [each for each in commands_of(page, "manage.py") if each[:2] == ["cluster", "register"]]
    assert registrations
    for number, (_, _, name, *options) in enumerate(registrations):
        run_management_command(["cluster", "register", f"{name} {number}", *options])
        assert Cluster.objects.get(name=f"{name} {number}").read_only is ("--read-only" in options)


@pytest.mark.parametrize("page", [README, INSTALL], ids=lambda page: page.name)
def test_documented_environment__is_what_the_compose_file_asks_for(page: Path, tmp_path: Path) -> None:
    blocks = doc_links.FENCE.findall(page.read_text(encoding="utf-8"))
    [block] = [block for block in blocks if "> .env" in block]
    script = "\n".join(line for line in block.splitlines() if ".env" in line)
    subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=tmp_path, check=True)
    values = dict(line.split("=", 1) for line in (tmp_path / ".env").read_text(encoding="utf-8").splitlines())
    compose = (doc_links.ROOT / "docker-compose.yml").read_text(encoding="utf-8")
    assert values.keys() == set(re.findall(r"\$\{(\w+):\?", compose))
    Fernet(values["FIELD_KEYS"])
    assert all(
        re.fullmatch(r"[0-9a-f]{64}", values[name]) for name in values if name not in {"FIELD_KEYS", "ALLOWED_HOSTS"}
    )
