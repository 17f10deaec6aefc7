"""What a run says at its end: a table of tiers, and as the last line ``N passed, N failed, N skipped``.

A run of everything in which a tier has no test fails. With ``KAFKADASH_REQUIRE=all`` a skipped test fails.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Generator
from pathlib import Path

import pytest

# Folder below tests/ → tier; every other folder is "app". A marker of the same name on a test overrides its folder.
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
    "domain": "domain",
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
OWN_TARGET = "smoke"  # `make smoke` runs these; `make test` does not

_TIER = "tier"


class Totals:
    """Counts and seconds per tier, kept by the process that prints the summary."""

    def __init__(self) -> None:
        self.outcomes: dict[str, Counter[str]] = {tier: Counter() for tier in TIERS}
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.collection_failures = 0

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


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_totals] = Totals()
    for tier, what in {**TIERS, OWN_TARGET: "the whole demo, headless"}.items():
        config.addinivalue_line("markers", f"{tier}: {what}")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        tier = tier_of(item, config.rootpath)
        item.user_properties.append((_TIER, tier))
        item.add_marker(tier)


def tier_of(item: pytest.Item, root: Path) -> str:
    for tier in [*TIERS, OWN_TARGET]:
        if item.get_closest_marker(tier) is not None:
            return tier
    parts = item.path.relative_to(root / "tests").parts if item.path.is_relative_to(root / "tests") else ()
    return FOLDERS.get(parts[0], OWN_TARGET if parts[0] == OWN_TARGET else "app") if len(parts) > 1 else "app"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and _nothing_may_be_skipped():
        report.outcome = "failed"
        report.longrepr = f"skipped, but KAFKADASH_REQUIRE=all: {_reason(report)}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if report.skipped and _nothing_may_be_skipped():
        report.outcome = "failed"
        report.longrepr = f"skipped, but KAFKADASH_REQUIRE=all: {_reason(report)}"
    return report


@pytest.hookimpl(trylast=True)
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _config.stash[_totals].add(report)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        _config.stash[_totals].collection_failures += 1


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    # The two hooks above are not told the config; there is one session in a process.
    global _config  # noqa: PLW0603
    _config = session.config


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """An empty tier fails a run of everything; decided here, as the exit code is read right after."""
    if _is_worker(session.config) or not _is_everything(session.config):
        return
    if session.exitstatus == pytest.ExitCode.OK and _empty_tiers(session.config.stash[_totals]):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    totals = config.stash[_totals]
    terminalreporter.section("tiers")
    terminalreporter.write_line(f"{'tier':<12}{'tests':>8}{'failed':>8}{'skipped':>9}{'seconds':>10}")
    for tier in totals.outcomes:
        counts = totals.outcomes[tier]
        terminalreporter.write_line(
            f"{tier:<12}{totals.tests(tier):>8}{counts['failed']:>8}{counts['skipped']:>9}{totals.seconds[tier]:>10.1f}"
        )
    if _is_everything(config):
        for tier in _empty_tiers(totals):
            terminalreporter.write_line(f"FAILED: the tier {tier} ({TIERS[tier]}) has no test.", red=True)


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """After pytest's own last line."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or _is_worker(config) or config.option.collectonly:
        return
    totals = config.stash[_totals]
    empty = len(_empty_tiers(totals)) if _is_everything(config) else 0
    reporter.write_line(
        f"{totals.of('passed')} passed, {totals.of('failed') + empty} failed, {totals.of('skipped')} skipped"
    )


def _empty_tiers(totals: Totals) -> list[str]:
    return [tier for tier in TIERS if totals.tests(tier) == 0]


def _is_everything(config: pytest.Config) -> bool:
    """No paths, no selection: what ``make test`` runs."""
    option = config.option
    narrowed = option.keyword or option.markexpr or option.collectonly or option.maxfail or option.deselect
    narrowed = narrowed or getattr(option, "lf", False) or getattr(option, "failedfirst", False)
    return config.args_source is pytest.Config.ArgsSource.TESTPATHS and not narrowed


def _is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


def _nothing_may_be_skipped() -> bool:
    return os.environ.get("KAFKADASH_REQUIRE", "") == "all"


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    return str(report.longrepr[2]) if isinstance(report.longrepr, tuple) else str(report.longrepr)


_config: pytest.Config
