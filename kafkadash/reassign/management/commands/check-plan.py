"""``manage.py check-plan``: a plan in Kafka's JSON, held against an exported topology rule by rule. Asks no server."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from typing import Any

from django.core.management.base import BaseCommand

from kafkadash.domain.checker import Asked, check
from kafkadash.domain.impact_of import impact_of
from kafkadash.domain.kafka_json import Parsed
from kafkadash.domain.messages import message_text
from kafkadash.domain.plan import ANY_DIRECTORY, Row, canonical, sha256
from kafkadash.domain.planner.request import EXPLICIT
from kafkadash.domain.planner.request_problems import problems_of
from kafkadash.domain.planner.topology import Topology
from kafkadash.domain.rule import Rule
from kafkadash.domain.wording import count
from kafkadash.observe.cycles import without_search_for_cycles
from kafkadash.reassign.errors import ReassignmentErrorCode
from kafkadash.reassign.planning_options import (
    BAD,
    NotPlanned,
    add_request_options,
    report_in,
    request_of,
    rows_in,
    show,
    topology_in,
)

BROKEN = 1  # exit: a rule is not kept
_WORDS = {True: "kept", False: "broken", None: "not judged"}


class Command(BaseCommand):
    help = (
        "Judges a plan without the code that made it: each rule with its result. Exit 0 where no rule is broken, 1 "
        "where one is, 2 where the input cannot be read."
    )
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--topology", required=True, metavar="FILE", help="as export-topology writes it")
        parser.add_argument("--plan", required=True, metavar="FILE", help="Kafka's JSON of an assignment")
        parser.add_argument(
            "--report",
            metavar="FILE",
            help="of manage.py plan: what was asked for, unless --mode says so, and the proof",
        )
        add_request_options(parser, mode_needed=False)

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            with without_search_for_cycles():
                rules, notices = _judged(options)
        except NotPlanned as error:
            for sentence in error.shown:
                self.stderr.write(sentence)
            sys.exit(BAD)
        show(self.stdout, [*_lines(rules), *notices, _verdict(rules)])
        if any(rule.passed is False for rule in rules):
            sys.exit(BROKEN)


def _judged(options: dict[str, Any]) -> tuple[list[Rule], list[str]]:
    """The rules, and what is to be known besides. Raises NotPlanned."""
    report = None if options["report"] is None else report_in(options["report"])
    if report is not None and options["mode"] is None:
        request = report.request
    else:
        request = request_of(options, options["mode"] or EXPLICIT)
    topology, known = topology_in(options["topology"])
    problems = problems_of(request, topology)
    if problems:
        raise NotPlanned(*map(str, problems))
    parsed = rows_in(options["plan"], may_be_empty=True)
    rows, as_now = _rows(parsed, topology)
    notices = [*map(str, parsed.notices), *(known if request.disk_limit is not None else [])]
    if as_now:
        notices.append(
            message_text(
                ReassignmentErrorCode.ROWS_AS_NOW,
                partitions=count(as_now, "partition"),
                are="is" if as_now == 1 else "are",
            )
        )
    impact = impact_of(rows, topology, disk_limit=request.disk_limit)
    rules = list(check(rows, topology, Asked.of_request(request), impact, report.proof if report else None))
    if report is not None:
        same = report.plan_sha256 == sha256(canonical(rows))
        rules.append(
            Rule(
                "plan of the report",
                same,
                "",
                () if same else (message_text(ReassignmentErrorCode.REPORT_OF_ANOTHER_PLAN),),
            )
        )
    return rules, notices


def _rows(parsed: Parsed, topology: Topology) -> tuple[list[Row], int]:
    """With what is now from the topology, nothing where it is unknown; and how many are as they are now."""
    live = {(name, p.partition): p for name, topic in topology.topics.items() for p in topic.partitions}
    rows: list[Row] = []
    as_now = 0
    for asked in parsed.rows:
        partition, topic = live.get((asked.topic, asked.partition)), topology.topics.get(asked.topic)
        current = partition.replicas if partition else ()
        dirs = () if all(path == ANY_DIRECTORY for path in asked.log_dirs) else asked.log_dirs
        if asked.replicas == current and not dirs:
            as_now += 1
        else:
            rows.append(Row(asked.topic, topic.id if topic else "", asked.partition, current, asked.replicas, dirs))
    return rows, as_now


def _lines(rules: Sequence[Rule]) -> Iterator[str]:
    for rule in rules:
        yield f"{_WORDS[rule.passed]:<10}  {rule.name:<22}  {rule.figure}".rstrip()
        yield from (f"            {problem}" for problem in rule.problems)


def _verdict(rules: Sequence[Rule]) -> str:
    broken, unjudged = ([rule for rule in rules if rule.passed is state] for state in (False, None))
    verdict = f"{count(len(broken), 'rule')} of {len(rules)} broken" if broken else f"no rule of {len(rules)} broken"
    return f"{verdict}, {len(unjudged)} not judged" if unjudged else verdict
