"""The catalogue is whole: each entry is driven, each sentence stands there, and each says what to do next."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

import kafkadash
from kafkadash.domain.refusals import catalogue
from kafkadash.domain.refusals.entry import Entry
from tests.refusals.driving import DRIVEN
from tests.refusals.write_page import CATALOGUES, DOC, catalogue_messages, whole_page

HERE = Path(__file__).parent
ROOT = Path(kafkadash.__file__).parent
ENTRIES = list(catalogue.catalogue().values())
CODES = [code for title in CATALOGUES for code in catalogue_messages(title)]

RAISED = frozenset(
    {
        "AccountRefused",
        "CommandError",
        "BadAddresses",
        "NoSecret",
        "SecretError",
        "ServerError",
        "UnknownKind",
        "AnotherCluster",
        "AsksAgain",
        "AuthenticationFailed",
        "BadPlan",
        "BadPolicy",
        "BadRate",
        "BadTopology",
        "Changed",
        "DeadlineExceeded",
        "EditedMeanwhile",
        "IdentityChanged",
        "Http404",
        "JobFailed",
        "NotAuthorized",
        "NotDescribed",
        "NotPossible",
        "NotSupported",
        "Outdated",
        "PermissionDenied",
        "PipelineFault",
        "QuorumUnavailable",
        "Refused",
        "RequestFailed",
        "Unreachable",
        "ValidationError",
        "WrongField",
    }
)
"""What is raised with a sentence for people."""

DONE = (
    "accounts",
    "changes",
    "clusters",
    "domain",
    "embedded",
    "jobs",
    "kafka",
    "live",
    "observe",
    "oncall",
    "ops",
    "pipeline",
    "playground",
    "reassign",
)
"""Where all of these are raised with an entry; what is not named here has sentences of its own still."""

TELLING = frozenset(
    {
        "changes/access.py",
        "changes/kinds.py",
        "changes/policy_views.py",
        "changes/recheck.py",
        "changes/review.py",
        "changes/transitions.py",
        "changes/verbs.py",
        "changes/views.py",
        "domain/group_history.py",
        "domain/headline.py",
        "domain/impact_watch.py",
        "domain/judges/brokers.py",
        "domain/judges/controllers.py",
        "domain/judges/directories.py",
        "domain/judges/groups.py",
        "domain/judges/partitions.py",
        "domain/judges/pipeline.py",
        "domain/judges/reassignments.py",
        "domain/lag_history.py",
        "domain/lag_words.py",
        "domain/ledger_lists.py",
        "domain/ledger_rates.py",
        "domain/planner/report_text.py",
        "domain/quorum_verdict.py",
        "domain/run_notes.py",
        "domain/staleness.py",
        "domain/verify.py",
        "reassign/asked.py",
        "reassign/before_after.py",
        "reassign/described.py",
        "reassign/management/commands/check-plan.py",
        "reassign/management/commands/export-topology.py",
        "reassign/management/commands/plan.py",
        "reassign/management/commands/reassignments.py",
        "reassign/plan_words.py",
        "reassign/proof_words.py",
        "reassign/run/broker_absences.py",
        "reassign/run/cancelling.py",
        "reassign/run/chart.py",
        "reassign/run/ending_views.py",
        "reassign/run/ledger_page.py",
        "reassign/run/measure.py",
        "reassign/run/notices.py",
        "reassign/run/order_answers.py",
        "reassign/run/page.py",
        "reassign/run/report.py",
        "reassign/run/report_text.py",
        "reassign/run/rollback.py",
        "reassign/run/row_shown.py",
        "reassign/run/summaries.py",
        "reassign/run/turn.py",
        "reassign/run/views.py",
        "reassign/verify_views.py",
        "reassign/what_forms.py",
        "reassign/wizard_views.py",
        "reassign/workload_words.py",
        "playground/consumers.py",
    }
)
"""Where sentences stand that no entry has: they tell what is, what was done or what will be, or are labels.

Verdicts of domain/verify.py are in the words of Kafka's own tool.
What is raised in these files is seen to by DONE.
"""

WHOLE = (
    *(
        name
        for folder in ("changes", "domain", "embedded", "playground", "reassign")
        for path in sorted((ROOT / folder).rglob("*.py"))
        if (name := path.relative_to(ROOT).as_posix()) not in TELLING
        and path.parent.name not in ("migrations", "refusals")
        and not path.stem.endswith("messages")
    ),
    *(f"kafka/{path.name}" for path in sorted((ROOT / "kafka").glob("*.py"))),
    "live/consumer.py",
    "observe/not_read.py",
    "plan_job.py",
    "topic_match.py",
    "verify_file.py",
)
"""Where no sentence for people stands at all, raised or not."""

KNOWN_TO_PEOPLE = (
    "ZooKeeper",
    "PostgreSQL",
    "PyArrow",
    "MiB",
    "FIELD_KEYS",
    "SECRET_KEY_FALLBACKS",
    "SECRET_KEY",
    "PySpark",
    "PyArrow",
    "JAVA_HOME",
    "PIPELINE_URI",
    "PIPELINE_SPARK_CONF",
    "DATABASE_URL",
    "REDIS_URL",
    "PIPELINE_URI",
    "LOG_LEVEL",
    "KAFKADASH_CACHE",
    "HTTPS_PROXY",
)
"""What looks like a name of the makers: products, a unit, and what operators set themselves (README)."""


def test_every_entry_is_driven_and_every_case_has_its_entry() -> None:
    for module in HERE.glob("test_*_said.py"):
        importlib.import_module(f"tests.refusals.{module.stem}")
    assert {entry.key for entry in ENTRIES} == DRIVEN - {code.value for code in CODES}


def test_each_is_a_sentence_and_says_what_to_do_next() -> None:
    for entry in ENTRIES:
        assert re.fullmatch(r"[a-z][a-z-]+[a-z]", entry.key), entry.key
        assert entry.then, f"{entry.key}: what to do next"
        for part in (entry.what, entry.then):
            if part:
                assert part[0].isupper() or part[0] in "{#“" or part.startswith("kafkadash"), part
                assert part[-1] in ".?}", part
            assert "  " not in part, part
            assert part == part.strip(), part
        assert "{" in entry.then[:1] or " " in entry.then, entry.key


def test_none_names_what_only_its_makers_know() -> None:
    for entry in ENTRIES:
        words = re.sub("|".join(KNOWN_TO_PEOPLE), "x", re.sub(r"\{.*?\}", "x", f"{entry.what} {entry.then}"))
        assert not re.search(r"[a-z][A-Z]|_|Error\b|Exception|Traceback|\bNone\b|\bjson\b|\(\)", words), words


def test_each_is_told_with_its_values_only() -> None:
    """Every use names each value of its entry and no other."""
    named = {f"{s.__name__.rsplit('.', 1)[1]}.{name}": value for s in catalogue.SUBJECTS for name, value in _named(s)}
    by_name = {name.split(".")[1]: value for name, value in named.items()}
    assert len(by_name) >= len(named) - 2, "names are nearly unique, so that uses can be told apart"
    used = 0
    for path in ROOT.rglob("*.py"):
        for call in _calls(path):
            name = _last(call.func)
            if name in ("apart", "cause", "told") and isinstance(call.func, ast.Attribute):
                name = _last(call.func.value)
            entry = by_name.get(name) if name else None
            if entry is None or any(keyword.arg is None for keyword in call.keywords):
                continue
            given = {keyword.arg for keyword in call.keywords}
            candidates = [value for full, value in named.items() if full.endswith(f".{name}")]
            assert any(given == fields(each) for each in candidates), f"{path}:{call.lineno} {name}"
            used += 1
    assert used > len(ENTRIES) * 0.8


def test_what_is_raised_for_people_comes_from_the_catalogue() -> None:
    paths = [path for folder in DONE for path in files(folder)]
    assert [f"{path.relative_to(ROOT)}:{line}" for path in paths for line in raised_with_own_words(path)] == []


def test_no_sentence_for_people_stands_in_other_files() -> None:
    paths = [path for name in WHOLE for path in files(name)]
    assert [f"{path.relative_to(ROOT)}:{line}" for path in paths for line in own_sentences(_tree(path))] == []


def test_what_tells_is_not_listed_without_need() -> None:
    assert [name for name in sorted(TELLING) if not own_sentences(_tree(*files(name)))] == [], "they have none any more"


def test_own_words_are_found() -> None:
    source = (
        'raise Refused("No.")\nraise Refused(f"No {x}.") from e\nraise Refused(said.NO(x=f"#{x}"))\nraise BadRate(why)'
    )
    assert list(_raised(ast.parse(source))) == [1, 2]
    assert own_sentences(ast.parse('"""Doc."""\nx = "Not now, please."\ny = "word"\nz = f"It is {x} now."')) == [2, 4]


def test_the_page_is_that_of_the_catalogue() -> None:
    assert DOC.read_text() == whole_page(), "run: python -m tests.refusals.write_page"


def files(name: str) -> list[Path]:
    path = ROOT / name
    found = sorted(path.rglob("*.py")) if path.is_dir() else [path]
    assert found
    return found


def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def fields(entry: Entry) -> set[str]:
    return {name for part in (entry.what, entry.then) for _, name, _, _ in Formatter().parse(part) if name}


def raised_with_own_words(path: Path) -> Iterator[int]:
    return _raised(ast.parse(path.read_text()))


def _raised(tree: ast.AST) -> Iterator[int]:
    for node in ast.walk(tree):
        call = node.exc if isinstance(node, ast.Raise) else None
        if isinstance(call, ast.Call) and _last(call.func) in RAISED and any(_words(arg) for arg in call.args):
            yield node.lineno  # type: ignore[attr-defined]


def _words(node: ast.AST) -> bool:
    """Whether it has a text of its own, outside of what is given to an entry."""
    if isinstance(node, ast.Call) and (_last(node.func) or "").isupper():
        return False
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return any(character.isalpha() for character in node.value)
    if isinstance(node, ast.JoinedStr):
        return True
    if isinstance(node, ast.Dict):
        return any(_words(value) for value in node.values)
    return any(_words(child) for child in ast.iter_child_nodes(node))


def own_sentences(tree: ast.Module) -> list[int]:
    """Lines of texts that begin like a sentence and end like one, without docstrings."""
    apart = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    apart |= {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    found = []
    for node in ast.walk(tree):
        text = ""
        if id(node) in apart:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        elif isinstance(node, ast.JoinedStr):
            text = "".join(part.value if isinstance(part, ast.Constant) else "x" for part in node.values)  # type: ignore[misc]
        if re.fullmatch(r"[A-Zx#“].* .*[.?]", text, re.DOTALL):
            found.append(node.lineno)  # type: ignore[attr-defined]
    return sorted(found)


def _named(subject: object) -> list[tuple[str, Entry]]:
    return [(name, value) for name, value in vars(subject).items() if isinstance(value, Entry)]


def _calls(path: Path) -> list[ast.Call]:
    return [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]


def _last(node: ast.AST) -> str | None:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else None
