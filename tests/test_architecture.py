"""The layers hold, the domain stays pure, and models and migrations say the same.

Decisions that depend on wording are found, and what only looks like one is not.
"""

from __future__ import annotations

import ast
import io
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from django.apps import apps
from django.core.management import call_command

import kafkadash
from kafkadash.monitoring.freshness import FactFreshness
from tests.commit_subjects import explain_subject
from tests.doors import find_faults
from tests.template_names import attribute_types
from tests.wording_check import wording_lines

ROOT = Path(kafkadash.__file__).parent
# No framework, no client, no clock of the database's, no array library outside racks and planner.
FOREIGN_TO_RULES = (
    "django", "celery", "channels", "confluent_kafka", "kafka", "kazoo", "redis", "pyspark", "pyarrow",
)  # fmt: skip
ARRAYS, SOLVER = "numpy", "ortools"


def test_every_app_is_in_the_layers() -> None:
    config = (ROOT.parent / "pyproject.toml").read_text()
    apps_of_ours = [app.name for app in apps.get_app_configs() if app.name.startswith("kafkadash.")]
    assert apps_of_ours
    for app in apps_of_ours:
        assert f'    "{app}",\n' in config, f"{app} has no layer in pyproject.toml"


def pure_modules() -> list[str]:
    """Modules that the import contract keeps free of frameworks: rules, plans and the engine."""
    contracts = tomllib.loads((ROOT.parent / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (named,) = (
        each["source_modules"] for each in contracts if "kafkadash.planning.solver" in each.get("source_modules", ())
    )
    paths = [ROOT.parent / name.replace(".", "/") for name in named]
    files = [
        file for path in paths for file in (sorted(path.rglob("*.py")) if path.is_dir() else [path.with_suffix(".py")])
    ]
    found = [file.relative_to(ROOT.parent).with_suffix("") for file in files if file.stem != "__init__"]
    assert len(found) > len(named)
    return [".".join(path.parts) for path in found]


def loaded_by(*modules: str) -> set[str]:
    """Names of the packages that a process has which imports these, and nothing else."""
    assert modules
    code = f"import sys, {', '.join(modules)}; print(*sorted(name.split('.')[0] for name in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT.parent, capture_output=True, text=True, check=True, timeout=60
    )
    return set(done.stdout.split())


def test_pure_modules_load_no_framework() -> None:
    foreign = set(FOREIGN_TO_RULES)
    assert not loaded_by(*(name for name in pure_modules() if ".solver." not in name)) & foreign
    # The solver brings pandas, and pandas brings PyArrow wherever that is installed.
    assert not loaded_by(*pure_modules()) & (foreign - {"pyarrow"})


def test_only_the_planner_and_its_checker_load_arrays_and_the_checker_no_solver() -> None:
    checker = "kafkadash.planning.checker"
    others = [name for name in pure_modules() if ".solver." not in name and name != checker]
    assert not loaded_by(*others) & {ARRAYS, SOLVER}
    assert SOLVER not in loaded_by(checker)


@pytest.mark.parametrize("module", pure_modules())
def test_pure_modules_read_no_clock_and_draw_no_lots(module: str) -> None:
    """Time is a parameter there, and chance has no place."""
    path = ROOT.parent / f"{module.replace('.', '/')}.py"
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


@pytest.mark.parametrize(
    "source",
    [
        'job.error == "x"',
        'why == "no broker is known"',
        '"still going" in words',
        "job.error in said",
        'answer.startswith("It ")',
        'why.startswith("Nobody can tell")',
        'rows.exclude(reason="")',
        'Q(state="gave up")',
        'Q(reason__startswith="x")',
        'why in ("one", "two words")',
    ],
)
def test_wording__decides__is_found(source: str) -> None:
    assert wording_lines(ast.parse(source)) == [1]


@pytest.mark.parametrize(
    "source",
    [
        "job.error is None",
        'run.error_code == ""',
        'state == "done"',
        'Q(reason__icontains=values["q"])',
        'path.startswith("/clusters/")',
        'shown = "It is done." if done else "It goes on."',
    ],
)
def test_wording__is_only_told_or_searched__is_not_found(source: str) -> None:
    assert wording_lines(ast.parse(source)) == []


@pytest.mark.parametrize(
    ("subject", "is_good"),
    [
        ("fix(kafka): close idle sockets", True),
        ("refactor: move modules into rooms by capability", True),
        ("Fix idle sockets", False),
        ("fix(kafka): close idle sockets.", False),
        ("fix: " + "a" * 68, False),
    ],
)
def test_commit_subjects(subject: str, is_good: bool) -> None:
    assert (explain_subject(subject) == "") is is_good


def test_doors__a_module_behind_one_is_imported__is_found(tmp_path: Path) -> None:
    files = {
        "kafka/__init__.py": 'PUBLIC_MODULES = ("api", "probe")',
        "jobs/__init__.py": "",
        "jobs/runner.py": "from kafkadash.kafka import dispatch\nfrom kafkadash.kafka.api import OffsetQuery",
    }
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)

    assert find_faults(tmp_path) == [
        "jobs/runner.py: kafka.dispatch is not in PUBLIC_MODULES of kafka",
        "kafka: no other room imports probe",
    ]


def test_template_names__an_attribute_that_its_type_lacks__is_found() -> None:
    assert attribute_types(FactFreshness, "stale") == frozenset({bool})
    assert attribute_types(FactFreshness, "stael") is None
