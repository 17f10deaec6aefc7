"""The layers hold, the domain stays pure, and models and migrations say the same."""

from __future__ import annotations

import ast
import io
import subprocess
import sys
from pathlib import Path

import pytest
from django.apps import apps
from django.core.management import call_command

import kafkadash

ROOT = Path(kafkadash.__file__).parent
# No framework, no client, no clock of the database's, no array library outside racks and planner.
FOREIGN_TO_THE_DOMAIN = (
    "django", "celery", "channels", "confluent_kafka", "kafka", "kazoo", "redis", "pyspark", "pyarrow",
)  # fmt: skip
ARRAYS, SOLVER = "numpy", "ortools"


def test_every_app_is_in_the_layers() -> None:
    config = (ROOT.parent / "pyproject.toml").read_text()
    apps_of_ours = [app.name for app in apps.get_app_configs() if app.name.startswith("kafkadash.")]
    assert apps_of_ours
    for app in apps_of_ours:
        assert f'    "{app}",\n' in config, f"{app} has no layer in pyproject.toml"


def domain_modules() -> list[str]:
    paths = [path.relative_to(ROOT.parent) for path in (ROOT / "domain").rglob("*.py") if path.stem != "__init__"]
    return [".".join(path.with_suffix("").parts) for path in paths]


def loaded_by(*modules: str) -> set[str]:
    """Names of the packages that a process has which imports these, and nothing else."""
    assert modules
    code = f"import sys, {', '.join(modules)}; print(*sorted(name.split('.')[0] for name in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT.parent, capture_output=True, text=True, check=True, timeout=60
    )
    return set(done.stdout.split())


def test_the_domain_loads_no_framework() -> None:
    foreign = set(FOREIGN_TO_THE_DOMAIN)
    assert not loaded_by(*(name for name in domain_modules() if ".planner" not in name)) & foreign
    # The solver brings pandas, and pandas brings PyArrow wherever that is installed.
    assert not loaded_by(*domain_modules()) & (foreign - {"pyarrow"})


def test_only_the_planner_and_its_checker_load_arrays_and_the_checker_no_solver() -> None:
    checker = "kafkadash.domain.checker"
    others = [name for name in domain_modules() if ".planner" not in name and name != checker]
    assert not loaded_by(*others) & {ARRAYS, SOLVER}
    assert SOLVER not in loaded_by(checker)


@pytest.mark.parametrize(
    "path", sorted((ROOT / "domain").rglob("*.py")), ids=lambda path: f"{path.parent.stem}.{path.stem}"
)
def test_the_domain_reads_no_clock_and_draws_no_lots(path: Path) -> None:
    """Time is a parameter there, and chance has no place."""
    imported = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            imported |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            imported.add(node.module.split(".")[0])
        elif isinstance(node, ast.Attribute):
            assert node.attr not in ("now", "utcnow", "today"), f"{path.name}:{node.lineno} reads a clock"
    assert not imported & {"time", "random", "secrets", "uuid"}


@pytest.mark.django_db
def test_models_and_migrations_say_the_same() -> None:
    out = io.StringIO()
    call_command("makemigrations", "--check", "--dry-run", stdout=out)
    assert "No changes detected" in out.getvalue()


def test_migrations_are_named_by_hand() -> None:
    names = [path.stem for path in ROOT.glob("*/migrations/0*.py")]
    assert names
    assert not [name for name in names if "auto" in name]
