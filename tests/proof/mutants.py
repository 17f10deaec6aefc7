"""Part "mutants": small faults put into the code one at a time, each of which some test has to notice.

Forty of them, ten in each of four packages, the same ones for as long as the code they change is the same. Each runs
only the tests that import its module, none of those that need real Kafka, Spark or a browser. Mutants that change
nothing anybody could observe, or that were not noticed when this part was written, are listed in survivors.txt; every
other one has to be killed.
"""

from __future__ import annotations

import ast
import heapq
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from operator import itemgetter
from pathlib import Path

import psutil

from tests.proof.extent import Extent
from tests.report_plugin import FOLDERS

ROOT = Path(__file__).resolve().parents[2]
COPIED = ("kafkadash", "tests", "templates", "static", "docs")
SEED, EACH = 19, 10
PACKAGES = (
    "kafkadash/execution/engine",
    "kafkadash/execution/progress",
    "kafkadash/planning/solver",
    "kafkadash/execution/worker",
    "kafkadash/kafka",
)
MUTANT_S = 120.0  # of processor time, so that a busy machine does not decide
WAITING_S = 900.0  # of wall time: what waits for ever takes no processor time
WITH_SERVERS = {"servers", "pipeline", "agreement", "e2e"}
SERVERS = "not kafka and not e2e and not pipeline and not servers"
TESTS_FAILED = 1  # pytest's exit code
SURVIVORS = frozenset((Path(__file__).parent / "survivors.txt").read_text(encoding="utf-8").splitlines())

COMPARISONS: dict[type[ast.cmpop], ast.cmpop] = {
    ast.Lt: ast.LtE(),
    ast.LtE: ast.Lt(),
    ast.Gt: ast.GtE(),
    ast.GtE: ast.Gt(),
    ast.Eq: ast.NotEq(),
    ast.NotEq: ast.Eq(),
    ast.In: ast.NotIn(),
    ast.NotIn: ast.In(),
    ast.Is: ast.IsNot(),
    ast.IsNot: ast.Is(),
}


@dataclass(frozen=True, slots=True)
class CodeMutant:
    """A piece of a file, and what stands there instead. Lines count from 1, columns are bytes and count from 0."""

    file: Path
    line: int
    column: int
    end_line: int
    end_column: int
    before: str
    after: str

    @property
    def name(self) -> str:
        """The same for as long as the code around it is: what survivors.txt lists."""
        return f"{self.file}: {self.before} -> {self.after}"

    def applied(self, source: str) -> str:
        lines = source.splitlines(keepends=True)
        first, last = lines[self.line - 1].encode(), lines[self.end_line - 1].encode()
        changed = first[: self.column] + f"({self.after})".encode() + last[self.end_column :]
        return "".join([*lines[: self.line - 1], changed.decode(), *lines[self.end_line :]])


@dataclass(frozen=True, slots=True)
class PytestEnd:
    """``code``: pytest's exit code, None where it was ended after ``MUTANT_S`` or ``WAITING_S``."""

    code: int | None
    processor_s: float


def prove(folder: Path, extent: Extent) -> bool:
    """Once, however many rounds are asked for: the mutants are always the same."""
    del extent
    folder = folder / "checkout"
    for name in COPIED:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "node_modules"))
    for name in ("pyproject.toml", "manage.py"):
        shutil.copy(ROOT / name, folder)
    survived, mutants = [], list(chosen())
    unchanged: dict[Path, PytestEnd] = {}
    for number, mutant in enumerate(mutants, 1):
        tests = _tests_of(folder, mutant.file)
        if mutant.file not in unchanged:
            unchanged[mutant.file] = _run_unchanged(folder, tests)
        end = _run_mutated(folder, mutant, tests)
        killed = _is_killed(end, unchanged[mutant.file])
        print(  # noqa: T201
            f"mutants: {number:>2} {'killed' if killed else 'SURVIVED'} in {end.processor_s:.0f} processor s "
            f"(all tests without it {unchanged[mutant.file].processor_s:.0f} s): {mutant.name} (line {mutant.line})",
            flush=True,
        )
        if not killed:
            survived.append(mutant.name)
    new = [name for name in survived if name not in SURVIVORS]
    print(f"mutants: {len(mutants) - len(survived)} of {len(mutants)} killed, {len(new)} survive anew")  # noqa: T201
    return not new


def chosen() -> Iterator[CodeMutant]:
    """By a hash of the expression, so that a change of the code replaces few of them."""
    for package in PACKAGES:
        files = sorted(path for path in (ROOT / package).glob("*.py") if path.stem not in {"__init__", "fail_points"})
        found = [mutant for path in files for mutant in _mutants_of(path)]
        seen: Counter[str] = Counter()
        ranked = []
        for mutant in found:
            seen[mutant.name] += 1
            ranked.append((sha256(f"{SEED} {mutant.name} {seen[mutant.name]}".encode()).digest(), mutant))
        for _, mutant in heapq.nsmallest(EACH, ranked, key=itemgetter(0)):
            yield mutant


def _run_unchanged(folder: Path, tests: Sequence[Path]) -> PytestEnd:
    """Raises AssertionError where the tests of a module fail without a fault: one would be noticed by chance only."""
    end = _run_tests(folder, tests)
    assert end.code in {0, None}, f"these tests fail without a fault, exit code {end.code}: {' '.join(map(str, tests))}"
    return end


def _run_mutated(folder: Path, mutant: CodeMutant, tests: Sequence[Path]) -> PytestEnd:
    target = folder / mutant.file
    source = target.read_text(encoding="utf-8")
    target.write_text(mutant.applied(source), encoding="utf-8")
    try:
        return _run_tests(folder, tests)
    finally:
        target.write_text(source, encoding="utf-8")


def _is_killed(end: PytestEnd, unchanged: PytestEnd) -> bool:
    """A fault that makes tests run on and on is noticed too, where they need less than half of that without."""
    if end.code is None:
        return unchanged.code is not None and unchanged.processor_s < MUTANT_S / 2
    return end.code in {TESTS_FAILED, 2, 4}  # 2 and 4 are import errors and usage errors: they could not even begin


def _run_tests(folder: Path, tests: Sequence[Path]) -> PytestEnd:
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", "-m", SERVERS]
    process = psutil.Popen(
        [*command, *map(str, tests)],
        cwd=folder,
        env={**os.environ, "KAFKADASH_REQUIRE": "", "PYTHONDONTWRITEBYTECODE": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    used, began = 0.0, time.monotonic()
    while used < MUTANT_S and time.monotonic() - began < WAITING_S:
        with suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            used = times.user + times.system
        with suppress(psutil.TimeoutExpired):
            return PytestEnd(process.wait(0.2), used)
    process.send_signal(signal.SIGINT)  # so that it ends the servers of its run
    try:
        process.wait(60)
    except psutil.TimeoutExpired:
        process.kill()
        process.wait()
    return PytestEnd(None, used)


def _tests_of(folder: Path, file: Path) -> list[Path]:
    """Those that import the module; where none does, those that import a module that imports it."""
    modules = {".".join(file.with_suffix("").parts)}
    for _ in range(3):
        found = [path for path in sorted((folder / "tests").rglob("test_*.py")) if _imports(path, modules)]
        found = [path for path in found if FOLDERS.get(path.relative_to(folder).parts[1]) not in WITH_SERVERS]
        if found:
            return [path.relative_to(folder) for path in found]
        users = [path for path in (folder / "kafkadash").rglob("*.py") if _imports(path, modules)]
        users += [path for path in (folder / "tests").rglob("*.py") if _imports(path, modules)]
        modules |= {".".join(path.relative_to(folder).with_suffix("").parts) for path in users}
    raise AssertionError(f"no test imports {file}")


def _imports(path: Path, modules: set[str]) -> bool:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import) and any(alias.name in modules for alias in node.names):
            return True
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            named = {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
            if named & modules:
                return True
    return False


def _mutants_of(path: Path) -> Iterator[CodeMutant]:
    """In the bodies of functions only: what runs at import fails everything at once and proves nothing."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    # Of expressions in f-strings Python 3.11 does not know the place.
    seen = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    for function in functions:
        for statement in function.body:
            for node in ast.walk(statement):
                if isinstance(node, ast.expr) and (after := _mutated(node)) is not None and id(node) not in seen:
                    seen.add(id(node))
                    yield CodeMutant(
                        path.relative_to(ROOT),
                        node.lineno,
                        node.col_offset,
                        node.end_lineno or node.lineno,
                        node.end_col_offset or node.col_offset,
                        ast.unparse(node),
                        ast.unparse(after),
                    )


def _mutated(node: ast.expr) -> ast.expr | None:
    """Another expression that looks as right, None where this kind of node has none."""
    match node:
        case ast.Compare(left, [operator], comparators):
            return ast.Compare(left, [COMPARISONS[type(operator)]], comparators)
        case ast.BoolOp(operator, values):
            return ast.BoolOp(ast.Or() if isinstance(operator, ast.And) else ast.And(), values)
        case ast.BinOp(left, ast.Add(), right):
            return ast.BinOp(left, ast.Sub(), right)
        case ast.BinOp(left, ast.Sub(), right):
            return ast.BinOp(left, ast.Add(), right)
        case ast.UnaryOp(ast.Not(), operand):
            return operand
        case ast.Constant(bool() as value):
            return ast.Constant(not value)
        case ast.Constant(int() as value):
            return ast.Constant(value + 1)
    return None
