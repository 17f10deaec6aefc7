"""Options and files of the commands that plan and check plans.

``with_use_reckoned`` adds the usage of disks for which only the total is known: the sizes of their replicas.
"""

from __future__ import annotations

import json
import os
import sys
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from django.core.management.base import OutputWrapper

from kafkadash.core.errors import UserError
from kafkadash.core.messages import CodedMessage, choose_plural, coded, message_json
from kafkadash.core.problems import InputProblem
from kafkadash.core.rows import without_search_for_cycles
from kafkadash.planning.errors import ReassignmentErrorCode
from kafkadash.planning.kafka_json import ParsedFile, read_reassignment
from kafkadash.planning.problem_codes import FileErrorCode
from kafkadash.planning.solver.report import BadReport, proof_in, request_in
from kafkadash.planning.solver.request import MODES, PlanProof, PlanRequest
from kafkadash.planning.topology import LARGEST_ID, BadTopology, ClusterTopology, PlannedBroker, read_topology


def with_use_reckoned(topology: ClusterTopology) -> tuple[ClusterTopology, list[int]]:
    """The same with what is in use filled in where a broker tells ``disk_bytes`` alone, and these brokers' ids.

    A broker with a replica whose size is not known stays as it is: its use would be too low.
    """
    bare = {id_ for id_, broker in topology.brokers.items() if _is_bare(broker)}
    if not bare:
        return topology, []
    used: Counter[int] = Counter()
    unsized: set[int] = set()
    for topic in topology.topics.values():
        for partition in topic.partitions:
            if partition.size_bytes is None:
                unsized.update(partition.replicas)
            else:
                for broker in partition.replicas:
                    used[broker] += partition.size_bytes
    reckoned = sorted(bare - unsized)
    filled = {id_: _set_used_bytes(topology.brokers[id_], used[id_]) for id_ in reckoned}
    return replace(topology, brokers={**topology.brokers, **filled}), reckoned


def _is_bare(broker: PlannedBroker) -> bool:
    return len(broker.dirs) == 1 and broker.dirs[0].used_bytes is None and broker.dirs[0].total_bytes is not None


def _set_used_bytes(broker: PlannedBroker, used: int) -> PlannedBroker:
    return replace(broker, dirs=(replace(broker.dirs[0], used_bytes=used),))


BAD = 2  # exit: bad input, or a request that cannot be met
MOST_SHOWN = 20


class NotPlanned(UserError):
    """``problems``: all that is in the way."""

    def __init__(
        self, said: StrEnum | CodedMessage | InputProblem, /, *more: CodedMessage | InputProblem, **params: Any
    ) -> None:
        super().__init__(said.message if isinstance(said, InputProblem) else said, **params)
        several = (said if isinstance(said, InputProblem) else self.message, *more)
        self.problems = tuple(each if isinstance(each, InputProblem) else InputProblem(each) for each in several)

    def __str__(self) -> str:
        return " ".join(map(str, self.problems))

    def as_json(self) -> str:
        """Return all problems as --json prints them, with their lines and columns in the file."""
        found = [message_json(each.message) | {"line": each.line, "column": each.column} for each in self.problems]
        return json.dumps({"problems": found}, indent=1, ensure_ascii=False)

    @property
    def shown(self) -> list[str]:
        """Return a line for each of the first problems, with its code, and how many more there are."""
        more = len(self.problems) - MOST_SHOWN
        lines = [f"{problem} ({problem.code})" for problem in self.problems[:MOST_SHOWN]]
        return [*lines, *([f"… and {choose_plural('# more problem|# more problems', more)}"] if more > 0 else [])]


@dataclass(frozen=True, slots=True)
class CommandReport:
    """Report of a plan: the request, the proof where there is one, and the sha256 of the plan."""

    request: PlanRequest
    proof: PlanProof | None
    plan_sha256: str


def add_request_options(parser: ArgumentParser, *, mode_needed: bool) -> None:
    """Options with which ``request_of`` makes a request."""
    parser.add_argument("--mode", choices=MODES, required=mode_needed, help="type of change")
    parser.add_argument("--brokers", metavar="IDS", help="broker IDs to add, drain or replace, such as 3,4")
    parser.add_argument(
        "--with",
        dest="with_",
        metavar="IDS",
        help="replacement brokers for replace; allowed target brokers for other modes",
    )
    parser.add_argument(
        "--rf", metavar="N", help="replication factor for set-rf; with explicit, allow replication factor changes"
    )
    parser.add_argument("--topics", metavar="REGEX", default="", help="topics to plan; must match whole names")
    parser.add_argument(
        "--exclude-topics", metavar="REGEX", default="", help="topics to exclude; must match whole names"
    )
    parser.add_argument(
        "--eps", metavar="SHARE", help="also balance disk usage to within this fraction of the rack mean, such as 0.05"
    )
    parser.add_argument(
        "--disk-limit", metavar="SHARE", help="maximum fraction of each disk, including old and new copies, such as 0.8"
    )
    parser.add_argument(
        "--rebalance", action="store_true", help="also rebalance replica counts within each rack (moves more data)"
    )
    parser.add_argument("--ignore-racks", action="store_true", help="plan without rack awareness")
    parser.add_argument(
        "--accept-fewer-racks",
        action="store_true",
        help="allow fewer racks if the last broker of a rack leaves",
    )
    parser.add_argument("--no-leaders", action="store_true", help="do not balance preferred leaders")
    parser.add_argument("--max-replicas-per-broker", metavar="N", help="maximum number of replicas per broker")


def request_of(options: Mapping[str, Any], mode: str) -> PlanRequest:
    """Raises NotPlanned where an option is no number; what the numbers mean is judged with the cluster."""
    faults: list[CodedMessage] = []
    with_ = _parse_ids(options, "with_", "--with", faults)
    factor = _parse_whole_number(options, "rf", faults)
    request = PlanRequest(
        mode,
        brokers=_parse_ids(options, "brokers", "--brokers", faults) or (),
        replacements=(with_ or ()) if mode == "replace" else (),
        targets=None if mode == "replace" else with_,
        factor=factor,
        pattern=options["topics"],
        excluded=options["exclude_topics"],
        eps=_parse_share(options, "eps", faults),
        disk_limit=_parse_share(options, "disk_limit", faults),
        most_replicas=_parse_whole_number(options, "max_replicas_per_broker", faults),
        rebalance=options["rebalance"],
        ignore_racks=options["ignore_racks"],
        accept_fewer_racks=options["accept_fewer_racks"],
        leaders=not options["no_leaders"],
        change_rf=factor is not None,
    )
    if faults:
        raise NotPlanned(*faults)
    return request


def topology_in(file: str) -> tuple[ClusterTopology, list[CodedMessage]]:
    """With what is in use on disks, and what is to be known about that. Raises NotPlanned."""
    content = content_of(file)
    with without_search_for_cycles():
        try:
            topology, reckoned = with_use_reckoned(read_topology(content))
        except BadTopology as error:
            raise NotPlanned(ReassignmentErrorCode.FILE_REFUSED, file=file, fault=error) from error
    if not reckoned:
        return topology, []
    return topology, [coded(ReassignmentErrorCode.DISK_USE_RECKONED, brokers=tuple(reckoned))]


def rows_in(file: str, *, may_be_empty: bool = False) -> ParsedFile:
    """Raises NotPlanned, with the problems of the file. ``may_be_empty``: a plan that moves nothing is one."""
    parsed = read_reassignment(content_of(file))
    if may_be_empty and [problem.code for problem in parsed.problems] == [FileErrorCode.NOTHING_ASKED_FOR]:
        return ParsedFile([], [], parsed.notices)
    if parsed.problems:
        raise NotPlanned(*parsed.problems)
    return parsed


def report_in(file: str) -> CommandReport:
    """The report of a plan. Raises NotPlanned."""
    try:
        found = json.loads(content_of(file))
        return CommandReport(request_in(found), proof_in(found), str(found.get("plan_sha256")))
    except (ValueError, RecursionError, BadReport) as error:
        raise NotPlanned(ReassignmentErrorCode.NO_REPORT_OF_A_PLAN, file=file) from error


def content_of(file: str) -> bytes:
    """Raises NotPlanned."""
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise NotPlanned(ReassignmentErrorCode.FILE_NOT_READ, file=file, fault=error.strerror or error) from error


def write_all(contents: Mapping[str, bytes]) -> None:
    """File → content: all of them or none, each whole. Raises NotPlanned."""
    unfinished: dict[Path, Path] = {}
    file = ""
    try:
        for file, content in contents.items():
            path = Path(file)
            if path.exists() and not path.is_file():
                path.write_bytes(content)  # a terminal, a pipe
                continue
            unfinished[path] = path.with_name(f"{path.name}.unfinished")
            unfinished[path].write_bytes(content)
        for path, beside in unfinished.items():
            file = str(path)
            beside.replace(path)
    except OSError as error:
        for beside in unfinished.values():
            with suppress(OSError):  # the sentence tells of the first fault
                beside.unlink(missing_ok=True)
        raise NotPlanned(ReassignmentErrorCode.FILE_NOT_WRITTEN, file=file, fault=error.strerror or error) from error


def print_lines(out: OutputWrapper, lines: Iterable[str]) -> None:
    """Line by line; whoever reads them may stop reading (``| head``): what was to be done is done by then."""
    try:
        for line in lines:
            out.write(line)
    except BrokenPipeError:
        # The interpreter must not stumble over the same pipe when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def require_places(files: Sequence[str | None]) -> None:
    """Raise NotPlanned unless these files can be written, before anything takes long."""
    named = [file for file in files if file is not None]
    if len({Path(file).absolute() for file in named}) < len(named):
        raise NotPlanned(ReassignmentErrorCode.ONE_FILE_FOR_BOTH, file=named[0])
    for file in named:
        folder = Path(file).parent
        if not folder.is_dir():
            raise NotPlanned(ReassignmentErrorCode.FILE_NOT_WRITTEN, file=file, fault=f"folder {folder} does not exist")


def _parse_ids(
    options: Mapping[str, Any], name: str, option: str, faults: list[CodedMessage]
) -> tuple[int, ...] | None:
    given = options[name]
    if given is None:
        return None
    parts = [part.strip() for part in given.split(",")]
    if not all(part.isascii() and part.isdigit() and int(part) <= LARGEST_ID for part in parts):
        faults.append(coded(ReassignmentErrorCode.OPTION_NO_IDS, option=option, given=given))
        return ()
    return tuple(dict.fromkeys(int(part) for part in parts))


def _parse_whole_number(options: Mapping[str, Any], name: str, faults: list[CodedMessage]) -> int | None:
    given = options[name]
    if given is None:
        return None
    try:
        number = int(given)
    except ValueError:
        number = LARGEST_ID + 1
    if number > LARGEST_ID:
        faults.append(
            coded(ReassignmentErrorCode.OPTION_NO_WHOLE_NUMBER, option=f"--{name.replace('_', '-')}", given=given)
        )
        return None
    return number


def _parse_share(options: Mapping[str, Any], name: str, faults: list[CodedMessage]) -> float | None:
    given = options[name]
    if given is None:
        return None
    try:
        return float(given)
    except ValueError:
        faults.append(coded(ReassignmentErrorCode.OPTION_NO_SHARE, option=f"--{name.replace('_', '-')}", given=given))
        return None
