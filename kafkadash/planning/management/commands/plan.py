"""``manage.py plan``: the plan of a request on an exported topology, its report, and both in words. Asks no server."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from dataclasses import replace
from typing import Any

from django.core.management.base import BaseCommand

from kafkadash.changes.plan import NOTHING_TO_MOVE
from kafkadash.core.messages import CodedMessage
from kafkadash.core.problems import InputProblem
from kafkadash.core.rows import without_search_for_cycles
from kafkadash.planning.checker import CheckRequest, check
from kafkadash.planning.command_options import (
    BAD,
    NotPlanned,
    add_request_options,
    print_lines,
    request_of,
    require_places,
    rows_in,
    topology_in,
    write_all,
)
from kafkadash.planning.errors import ReassignmentErrorCode
from kafkadash.planning.impact import impact_of
from kafkadash.planning.kafka_json import plan_json
from kafkadash.planning.solver.plan import plan
from kafkadash.planning.solver.report import format_report, report_of
from kafkadash.planning.solver.request import EXPLICIT, FINISH
from kafkadash.planning.solver.request_problems import PlanAnswer, limit_passed_today, problems_of


class Command(BaseCommand):
    help = (
        "Plan a change of an exported topology (export-topology) and print its impact. No cluster is contacted. "
        "Exit code 0: plan created, possibly empty; 2: problems found, nothing written."
    )
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--topology", required=True, metavar="FILE", help="output of export-topology")
        add_request_options(parser, mode_needed=True)
        parser.add_argument("--plan", metavar="FILE", help="Kafka's reassignment JSON, for explicit and finish")
        parser.add_argument("--out", metavar="FILE", help="write the plan for kafka-reassign-partitions")
        parser.add_argument("--report", metavar="FILE", help="write the impact and the proof as JSON")
        parser.add_argument("--json", action="store_true", help="print the report or the problems as JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            with without_search_for_cycles():
                report = self._planned(options)
        except NotPlanned as error:
            if options["json"]:
                self.stdout.write(error.as_json())
            else:
                for sentence in error.shown:
                    self.stderr.write(sentence)
            sys.exit(BAD)
        print_lines(self.stdout, [_as_json(report).decode()] if options["json"] else format_report(report))

    def _planned(self, options: dict[str, Any]) -> dict[str, Any]:
        """The report of the plan; both are written. Raises NotPlanned."""
        require_places([options["out"], options["report"]])
        request = request_of(options, options["mode"])
        if request.mode in (EXPLICIT, FINISH) and options["plan"] is None:
            raise NotPlanned(ReassignmentErrorCode.NO_PLAN_GIVEN, mode=request.mode)
        topology, known = topology_in(options["topology"])
        problems = problems_of(request, topology) or limit_passed_today(request, topology)
        if problems:
            raise NotPlanned(*problems)
        brought = rows_in(options["plan"]) if request.mode in (EXPLICIT, FINISH) else None
        planned = _empty_where_nothing_is_to_do(plan(topology, request, brought))
        if planned.problems:
            raise NotPlanned(*planned.problems)
        planned = replace(planned, notices=(*planned.notices, *map(InputProblem, known)))
        impact = impact_of(planned.rows, topology, disk_limit=request.disk_limit)
        for rule in check(planned.rows, topology, CheckRequest.of_request(request), impact, planned.proof):
            if rule.passed is False:
                raise NotPlanned(
                    ReassignmentErrorCode.CHECKER_DISAGREES,
                    rule=CodedMessage(rule.code, {}),
                    problem=rule.problems[0],
                )
        report = report_of(topology, request, planned, impact)
        contents = {options["out"]: plan_json(planned.rows), options["report"]: _as_json(report)}
        write_all({file: content for file, content in contents.items() if file is not None})
        return report


def _empty_where_nothing_is_to_do(planned: PlanAnswer) -> PlanAnswer:
    """Return an empty plan where the only problems say that nothing has to move; these problems become notices."""
    if not planned.problems or any(problem.code not in NOTHING_TO_MOVE for problem in planned.problems):
        return planned
    return PlanAnswer((), (), (*planned.notices, *planned.problems))


def _as_json(report: dict[str, Any]) -> bytes:
    return (json.dumps(report, indent=1, ensure_ascii=False) + "\n").encode()
