"""What the commands that plan and check plans take: options that make a request, and files."""

from __future__ import annotations

import json
import os
import sys
from argparse import ArgumentParser
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from django.core.management.base import OutputWrapper

from kafkadash.domain.errors import UserError
from kafkadash.domain.kafka_json import Parsed, read_reassignment
from kafkadash.domain.messages import CodedMessage, message_text
from kafkadash.domain.planner.disk_use import with_use_reckoned
from kafkadash.domain.planner.report_read import BadReport, proof_in, request_in
from kafkadash.domain.planner.request import MODES, PlanRequest, Proof
from kafkadash.domain.planner.topology import Topology
from kafkadash.domain.planner.topology_json import LARGEST_ID, BadTopology, read_topology
from kafkadash.domain.refusals import files
from kafkadash.domain.wording import count, listed_shortly
from kafkadash.observe.cycles import without_search_for_cycles
from kafkadash.reassign.errors import ReassignmentErrorCode

BAD = 2  # exit: bad input, or a request that cannot be met
MOST_SENTENCES = 20
_EMPTY = files.NOTHING_ASKED_FOR(field='"partitions"')


class NotPlanned(UserError):
    """``sentences``: one for each thing that is in the way."""

    def __init__(self, said: StrEnum | CodedMessage | str, /, *more: str, **params: Any) -> None:
        super().__init__(said, **params)
        self.sentences = (str(self.message), *more)

    def __str__(self) -> str:
        return " ".join(self.sentences)

    @property
    def shown(self) -> list[str]:
        """The first ones, and how many more there are."""
        more = len(self.sentences) - MOST_SENTENCES
        return [*self.sentences[:MOST_SENTENCES], *([f"… and {count(more, 'more problem')}"] if more > 0 else [])]


@dataclass(frozen=True, slots=True)
class Report:
    """Of a plan: what was asked for, the proof where there is one, and which plan it is."""

    request: PlanRequest
    proof: Proof | None
    plan_sha256: str


def add_request_options(parser: ArgumentParser, *, mode_needed: bool) -> None:
    """Those of 05-planner.md §1, with which ``request_of`` makes a request."""
    parser.add_argument("--mode", choices=MODES, required=mode_needed)
    parser.add_argument("--brokers", metavar="IDS", help="added, drained or replaced: 3,4")
    parser.add_argument(
        "--with",
        dest="with_",
        metavar="IDS",
        help="replace: who takes over; otherwise the only brokers that may be given replicas",
    )
    parser.add_argument("--rf", metavar="N", help="of set-rf; explicit: lets the replication factor change")
    parser.add_argument("--topics", metavar="REGEX", default="", help="only these, matched whole")
    parser.add_argument("--exclude-topics", metavar="REGEX", default="", help="all but these, matched whole")
    parser.add_argument(
        "--eps", metavar="SHARE", help="balances disks as well, to within this of the mean of their rack: 0.05"
    )
    parser.add_argument(
        "--disk-limit", metavar="SHARE", help="of each disk, kept while old and new copies are there: 0.8"
    )
    parser.add_argument("--rebalance", action="store_true", help="others than those asked for may move too")
    parser.add_argument("--ignore-racks", action="store_true", help="as if no broker named a rack")
    parser.add_argument(
        "--accept-fewer-racks",
        action="store_true",
        help="partitions may end in fewer racks, where a rack loses its last broker",
    )
    parser.add_argument("--no-leaders", action="store_true", help="preferred leaders are not evened out")
    parser.add_argument("--max-replicas-per-broker", metavar="N")


def request_of(options: Mapping[str, Any], mode: str) -> PlanRequest:
    """Raises NotPlanned where an option is no number; what the numbers mean is judged with the cluster."""
    faults: list[str] = []
    with_ = _ids(options, "with_", "--with", faults)
    factor = _whole(options, "rf", faults)
    request = PlanRequest(
        mode,
        brokers=_ids(options, "brokers", "--brokers", faults) or (),
        replacements=(with_ or ()) if mode == "replace" else (),
        targets=None if mode == "replace" else with_,
        factor=factor,
        pattern=options["topics"],
        excluded=options["exclude_topics"],
        eps=_share(options, "eps", faults),
        disk_limit=_share(options, "disk_limit", faults),
        most_replicas=_whole(options, "max_replicas_per_broker", faults),
        rebalance=options["rebalance"],
        ignore_racks=options["ignore_racks"],
        accept_fewer_racks=options["accept_fewer_racks"],
        leaders=not options["no_leaders"],
        change_rf=factor is not None,
    )
    if faults:
        raise NotPlanned(*faults)
    return request


def topology_in(file: str) -> tuple[Topology, list[str]]:
    """With what is in use on disks, and what is to be known about that. Raises NotPlanned."""
    content = content_of(file)
    with without_search_for_cycles():
        try:
            topology, reckoned = with_use_reckoned(read_topology(content))
        except BadTopology as error:
            raise NotPlanned(ReassignmentErrorCode.FILE_REFUSED, file=file, fault=error) from error
    if not reckoned:
        return topology, []
    brokers = listed_shortly([str(id_) for id_ in reckoned], 8)
    return topology, [
        message_text(
            ReassignmentErrorCode.DISK_USE_RECKONED,
            brokers=f"{'broker' if len(reckoned) == 1 else 'brokers'} {brokers}",
        )
    ]


def rows_in(file: str, *, may_be_empty: bool = False) -> Parsed:
    """Raises NotPlanned, with the problems of the file. ``may_be_empty``: a plan that moves nothing is one."""
    parsed = read_reassignment(content_of(file))
    if may_be_empty and [problem.sentence for problem in parsed.problems] == [_EMPTY]:
        return Parsed([], [], parsed.notices)
    if parsed.problems:
        raise NotPlanned(
            *(message_text(ReassignmentErrorCode.FILE_REFUSED, file=file, fault=problem) for problem in parsed.problems)
        )
    return parsed


def report_in(file: str) -> Report:
    """The report of a plan. Raises NotPlanned."""
    try:
        found = json.loads(content_of(file))
        return Report(request_in(found), proof_in(found), str(found.get("plan_sha256")))
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


def show(out: OutputWrapper, lines: Iterable[str]) -> None:
    """Line by line; whoever reads them may stop reading (``| head``): what was to be done is done by then."""
    try:
        for line in lines:
            out.write(line)
    except BrokenPipeError:
        # The interpreter must not stumble over the same pipe when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def require_places(files: Sequence[str | None]) -> None:
    """That these can be written, before anything takes long. Raises NotPlanned."""
    named = [file for file in files if file is not None]
    if len({Path(file).absolute() for file in named}) < len(named):
        raise NotPlanned(ReassignmentErrorCode.ONE_FILE_FOR_BOTH, file=named[0])
    for file in named:
        folder = Path(file).parent
        if not folder.is_dir():
            raise NotPlanned(ReassignmentErrorCode.FILE_NOT_WRITTEN, file=file, fault=f"there is no folder {folder}")


def _ids(options: Mapping[str, Any], name: str, option: str, faults: list[str]) -> tuple[int, ...] | None:
    given = options[name]
    if given is None:
        return None
    parts = [part.strip() for part in given.split(",")]
    if not all(part.isascii() and part.isdigit() and int(part) <= LARGEST_ID for part in parts):
        faults.append(message_text(ReassignmentErrorCode.OPTION_NO_IDS, option=option, given=given))
        return ()
    return tuple(dict.fromkeys(int(part) for part in parts))


def _whole(options: Mapping[str, Any], name: str, faults: list[str]) -> int | None:
    given = options[name]
    if given is None:
        return None
    try:
        number = int(given)
    except ValueError:
        number = LARGEST_ID + 1
    if number > LARGEST_ID:
        faults.append(
            message_text(
                ReassignmentErrorCode.OPTION_NO_WHOLE_NUMBER, option=f"--{name.replace('_', '-')}", given=given
            )
        )
        return None
    return number


def _share(options: Mapping[str, Any], name: str, faults: list[str]) -> float | None:
    given = options[name]
    if given is None:
        return None
    try:
        return float(given)
    except ValueError:
        faults.append(
            message_text(ReassignmentErrorCode.OPTION_NO_SHARE, option=f"--{name.replace('_', '-')}", given=given)
        )
        return None
