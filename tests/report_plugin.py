"""What a run says at its end: its tiers, its processes, and as the last line ``N passed, N failed, N skipped``.

A run of everything in which a tier has no test fails, and one in which no test reached some code of the catalogue
(``reached_codes``). With ``KAFKADASH_REQUIRE=all`` a skipped test fails. A run of
everything is warned of each tier above its budget; with ``KAFKADASH_BUDGET=enforced`` one that takes more than 1.25
times the processor seconds of all budgets fails.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pytest

from tests.effort import MARK, SHARED, EffortMeter

# Folder below tests/ → tier; every other folder is "app". A marker of the same name on a test overrides its folder:
# rooms of the product hold tests of pure functions, marked "domain", beside those of the tier "app".
TIERS = {
    "domain": "pure functions",
    "app": "Django on PostgreSQL and Valkey",
    "servers": "embedded servers, the playground, the demo that runs them",
    "contract": "the Kafka port on the fake broker and on real Kafka",
    "pipeline": "Spark on this machine",
    "agreement": "what is shown equals what Kafka's own tools print",
    "e2e": "a browser against the running product and real Kafka",
}
FOLDERS = {
    "playground": "servers",
    "embedded": "servers",
    "demo": "servers",
    "stack": "servers",
    "chaos": "servers",
    "contract": "contract",
    "agreement": "agreement",
    "pipeline": "pipeline",
    "e2e": "e2e",
}


@dataclass(frozen=True, slots=True)
class TierBudget:
    """Seconds that a tier may take on the two cores of the machine that `EffortMeter.slowness` compares with: of its
    tests, and of all processors.
    """

    test_s: int
    processor_s: int


BUDGETS = {
    "domain": TierBudget(150, 105),
    "app": TierBudget(1450, 800),
    "servers": TierBudget(480, 255),
    "contract": TierBudget(190, 90),
    "pipeline": TierBudget(600, 340),
    "agreement": TierBudget(750, 330),
    "e2e": TierBudget(1200, 1100),
}
WHOLE_BUDGET_S = sum(budget.processor_s for budget in BUDGETS.values())
FAILS_ABOVE = 1.25
BUT_LONG = "not long"  # as `make test` selects
OWN_TARGET = "smoke"  # `make smoke` runs these; `make test` does not

_TIER, _PROCESS = "tier", "process id"
_Report = TypeVar("_Report", pytest.TestReport, pytest.CollectReport)


class Totals:
    """Counts and seconds per tier, kept by the process that prints the summary."""

    def __init__(self) -> None:
        self.outcomes: dict[str, Counter[str]] = {tier: Counter() for tier in TIERS}
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.collection_failures = 0
        self.processor_s: defaultdict[str, float] = defaultdict(float)
        self._charged: defaultdict[str, float] = defaultdict(float)

    def charge(self, tier: str, worker: str, seconds: float) -> None:
        """Charge the tier with what the worker and its processes took since the worker's last charge."""
        self.processor_s[tier] += seconds - self._charged[worker]
        self._charged[worker] = seconds

    def add(self, report: pytest.TestReport) -> None:
        tier = dict(report.user_properties).get(_TIER, "app")
        outcomes = self.outcomes.setdefault(str(tier), Counter())
        self.seconds[str(tier)] += report.duration
        if report.failed:
            # A test whose call passed and whose clean-up failed has failed; it is one test, not two.
            if report.when == "teardown" and outcomes[f"passed {report.nodeid}"]:
                outcomes["passed"] -= 1
            outcomes["failed"] += 1
        elif report.skipped:
            outcomes["skipped"] += 1
        elif report.when == "call":
            outcomes["passed"] += 1
            outcomes[f"passed {report.nodeid}"] = 1

    def of(self, outcome: str) -> int:
        extra = self.collection_failures if outcome == "failed" else 0
        return sum(counter[outcome] for counter in self.outcomes.values()) + extra

    def tests(self, tier: str) -> int:
        return sum(self.outcomes[tier][outcome] for outcome in ("passed", "failed", "skipped"))


_totals = pytest.StashKey[Totals]()
_meter = pytest.StashKey[EffortMeter]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_totals] = Totals()
    for tier, what in {**TIERS, OWN_TARGET: "the whole demo, headless"}.items():
        config.addinivalue_line("markers", f"{tier}: {what}")
    config.addinivalue_line("markers", "browser: needs Chromium; set on tests that use its fixture")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        tier = tier_of(item, config.rootpath)
        item.user_properties += [(_TIER, tier), (_PROCESS, os.getpid())]
        item.add_marker(tier)
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker("browser")


def tier_of(item: pytest.Item, root: Path) -> str:
    for tier in [*TIERS, OWN_TARGET]:
        if item.get_closest_marker(tier) is not None:
            return tier
    parts = item.path.relative_to(root / "tests").parts if item.path.is_relative_to(root / "tests") else ()
    return FOLDERS.get(parts[0], OWN_TARGET if parts[0] == OWN_TARGET else "app") if len(parts) > 1 else "app"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    return _refuse_skip((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    return _refuse_skip((yield))


def _refuse_skip(report: _Report) -> _Report:
    """Where nothing may be skipped, a skip fails."""
    if report.skipped and os.environ.get("KAFKADASH_REQUIRE", "") == "all":
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"skipped, but KAFKADASH_REQUIRE=all: {reason}"
    return report


@pytest.hookimpl(trylast=True)
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    totals, meter = _config.stash[_totals], _config.stash.get(_meter, None)
    totals.add(report)
    if meter is not None and report.when == "teardown":
        node = getattr(report, "node", None)  # of xdist's controller
        worker = node.gateway.id if node is not None else SHARED
        properties = dict(report.user_properties)
        if node is not None and isinstance(pid := properties.get(_PROCESS), int):
            meter.name_worker(pid, worker)
        totals.charge(str(properties.get(_TIER, "app")), worker, meter.seconds_by_worker().get(worker, 0.0))


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        _config.stash[_totals].collection_failures += 1


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    # The two hooks above are not told the config; there is one session in a process.
    global _config  # noqa: PLW0603
    _config = session.config
    if os.environ.get(MARK) and not _is_worker(session.config) and not session.config.option.collectonly:
        meter = session.config.stash[_meter] = EffortMeter()
        session.config.add_cleanup(meter.stop)
        meter.start()


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """A run of everything fails by its faults as by a test; decided here: the exit code is read right after."""
    if _is_worker(session.config):
        return
    if session.exitstatus == pytest.ExitCode.OK and _faults(session.config):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    totals = config.stash[_totals]
    write = terminalreporter.write_line
    terminalreporter.section("tiers")
    counted = f"{'tests':>8}{'failed':>8}{'skipped':>9}"
    write(f"{'tier':<12}{counted}{'seconds':>10}{'budget':>8}{'processor s':>13}{'budget':>8}")
    for tier, counts in totals.outcomes.items():
        budget = BUDGETS.get(tier)
        counted = f"{totals.tests(tier):>8}{counts['failed']:>8}{counts['skipped']:>9}"
        tests = f"{totals.seconds[tier]:>10.1f}{budget.test_s if budget else '':>8}"
        processors = f"{totals.processor_s[tier]:>13.1f}{budget.processor_s if budget else '':>8}"
        write(f"{tier:<12}{counted}{tests}{processors}")
    if meter := config.stash.get(_meter, None):
        meter.look()
        terminalreporter.section("processes")
        for line in meter.table():
            write(line)
        write(f"This machine takes {meter.slowness():.2f} times the processor seconds of the one of the budgets.")
    if not _is_everything(config):
        return
    slowness = meter.slowness() if meter else 1.0
    for tier, budget in BUDGETS.items():
        if totals.processor_s[tier] > slowness * budget.processor_s:
            write(f"Above its budget of {budget.processor_s} processor seconds: {tier}.", yellow=True)
    for fault in _faults(config):
        write(f"FAILED: {fault}", red=True)


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """After pytest's own last line."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or _is_worker(config) or config.option.collectonly:
        return
    totals = config.stash[_totals]
    failed = totals.of("failed") + len(_faults(config))
    reporter.write_line(f"{totals.of('passed')} passed, {failed} failed, {totals.of('skipped')} skipped")


def _faults(config: pytest.Config) -> list[str]:
    """Return what a run of everything fails by, beside its tests."""
    if not _is_everything(config):
        return []
    totals, recorder = config.stash[_totals], config.pluginmanager.get_plugin("tests.reached_codes")
    faults = [f"the tier {tier} ({TIERS[tier]}) has no test." for tier in TIERS if totals.tests(tier) == 0]
    if recorder is not None and (codes := recorder.unreached_codes()):
        faults.append(f"no test reached the codes {', '.join(codes)}.")
    if _is_too_dear(config):
        faults.append(f"more than {FAILS_ABOVE} times the budget of {WHOLE_BUDGET_S} processor seconds.")
    return faults


def _is_too_dear(config: pytest.Config) -> bool:
    """Whether budgets are enforced and the run took far more than all of them."""
    meter = config.stash.get(_meter, None)
    if meter is None or os.environ.get("KAFKADASH_BUDGET", "") != "enforced":
        return False
    return sum(meter.seconds_by_worker().values()) > meter.slowness() * FAILS_ABOVE * WHOLE_BUDGET_S


def _is_everything(config: pytest.Config) -> bool:
    """No paths, no selection: what ``make test`` runs."""
    option = config.option
    narrowed = (
        option.keyword
        or option.markexpr not in {"", BUT_LONG}
        or option.collectonly
        or option.maxfail
        or option.deselect
    )
    narrowed = narrowed or getattr(option, "lf", False) or getattr(option, "failedfirst", False)
    return config.args_source is pytest.Config.ArgsSource.TESTPATHS and not narrowed


def _is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


_config: pytest.Config
