"""``manage.py check-plan``: a plan in Kafka's JSON, held against an exported topology rule by rule. Asks no server."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from typing import Any

from django.core.management.base import BaseCommand

from kafkadash.changes.plan import ANY_DIRECTORY, PartitionMove, canonical_bytes, hash_artifact
from kafkadash.core.messages import choose_plural, coded, message_text
from kafkadash.core.rows import without_search_for_cycles
from kafkadash.planning.checker import CheckRequest, check
from kafkadash.planning.command_options import (
    BAD,
    NotPlanned,
    add_request_options,
    print_lines,
    report_in,
    request_of,
    rows_in,
    topology_in,
)
from kafkadash.planning.errors import ReassignmentErrorCode
from kafkadash.planning.impact import impact_of
from kafkadash.planning.kafka_json import ParsedFile
from kafkadash.planning.problem_codes import CheckedRule, RuleCode
from kafkadash.planning.solver.request import EXPLICIT
from kafkadash.planning.solver.request_problems import problems_of
from kafkadash.planning.topology import ClusterTopology

BROKEN = 1  # exit: a rule is not kept
_WORDS = {True: "passed", False: "violated", None: "unknown"}


class Command(BaseCommand):
    help = (
        "Check a plan independently of the planner and print the result of each rule. Exit code 0: no rule violated; "
        "1: a rule violated; 2: invalid input."
    )
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--topology", required=True, metavar="FILE", help="output of export-topology")
        parser.add_argument("--plan", required=True, metavar="FILE", help="Kafka's reassignment JSON")
        parser.add_argument(
            "--report",
            metavar="FILE",
            help="report of manage.py plan: the request, unless --mode is given, and the proof",
        )
        add_request_options(parser, mode_needed=False)

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            with without_search_for_cycles():
                rules, notices = _judge_plan(options)
        except NotPlanned as error:
            for sentence in error.shown:
                self.stderr.write(sentence)
            sys.exit(BAD)
        print_lines(self.stdout, [*_format_rules(rules), *notices, _verdict(rules)])
        if any(rule.passed is False for rule in rules):
            sys.exit(BROKEN)


def _judge_plan(options: dict[str, Any]) -> tuple[list[CheckedRule], list[str]]:
    """The rules, and what is to be known besides. Raises NotPlanned."""
    report = None if options["report"] is None else report_in(options["report"])
    if report is not None and options["mode"] is None:
        request = report.request
    else:
        request = request_of(options, options["mode"] or EXPLICIT)
    topology, known = topology_in(options["topology"])
    problems = problems_of(request, topology)
    if problems:
        raise NotPlanned(*problems)
    parsed = rows_in(options["plan"], may_be_empty=True)
    rows, as_now = _resolve_rows(parsed, topology)
    notices = [*map(str, parsed.notices), *(map(str, known) if request.disk_limit is not None else [])]
    if as_now:
        notices.append(message_text(ReassignmentErrorCode.ROWS_AS_NOW, partitions=as_now))
    impact = impact_of(rows, topology, disk_limit=request.disk_limit)
    rules = list(check(rows, topology, CheckRequest.of_request(request), impact, report.proof if report else None))
    if report is not None:
        same = report.plan_sha256 == hash_artifact(canonical_bytes(rows))
        other = coded(ReassignmentErrorCode.REPORT_OF_ANOTHER_PLAN)
        rules.append(CheckedRule(RuleCode.PLAN_OF_REPORT, same, "", () if same else (other,)))
    return rules, notices


def _resolve_rows(parsed: ParsedFile, topology: ClusterTopology) -> tuple[list[PartitionMove], int]:
    """With what is now from the topology, nothing where it is unknown; and how many are as they are now."""
    live = {(name, p.partition): p for name, topic in topology.topics.items() for p in topic.partitions}
    rows: list[PartitionMove] = []
    as_now = 0
    for asked in parsed.rows:
        partition, topic = live.get((asked.topic, asked.partition)), topology.topics.get(asked.topic)
        current = partition.replicas if partition else ()
        dirs = () if all(path == ANY_DIRECTORY for path in asked.log_dirs) else asked.log_dirs
        if asked.replicas == current and not dirs:
            as_now += 1
        else:
            rows.append(
                PartitionMove(asked.topic, topic.id if topic else "", asked.partition, current, asked.replicas, dirs)
            )
    return rows, as_now


def _format_rules(rules: Sequence[CheckedRule]) -> Iterator[str]:
    for rule in rules:
        yield f"{_WORDS[rule.passed]:<10}  {rule.name:<22}  {rule.figure}".rstrip()
        broken = rule.passed is False and rule.code != RuleCode.PLAN_OF_REPORT
        yield from (f"            {problem.cause if broken else problem}" for problem in rule.problems)


def _verdict(rules: Sequence[CheckedRule]) -> str:
    broken, unjudged = ([rule for rule in rules if rule.passed is state] for state in (False, None))
    wrong = choose_plural("# rule|# rules", len(broken)) if broken else "no rules"
    verdict = f"{wrong} of {len(rules)} violated"
    return f"{verdict}, {len(unjudged)} unknown" if unjudged else verdict
