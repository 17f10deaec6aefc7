"""Drafts of reassignments: the stored request (``ChangeRequest.input``), its texts, uploads, and the wizard's steps.

An upload is kept compressed; the last one of a draft counts.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime
from functools import cached_property
from typing import Any

from django.core.files.uploadedfile import UploadedFile
from django.db import transaction
from django.http import HttpRequest, QueryDict
from django.urls import reverse

from kafkadash.accounts.models import User
from kafkadash.changes import services as drafting
from kafkadash.changes.checks import CheckResult, CheckSubject
from kafkadash.changes.errors import ChangeRefused
from kafkadash.changes.models import ChangeRequest, RequestState
from kafkadash.changes.plan import PartitionMove, RunOptions
from kafkadash.changes.recheck import DRAFTS_FOR
from kafkadash.clusters.models import Cluster
from kafkadash.core.errors import UserError
from kafkadash.core.formatting import join_items
from kafkadash.core.json_columns import pack_dataclass, unpack_dataclass
from kafkadash.core.messages import choose_plural
from kafkadash.core.problems import InputProblem
from kafkadash.jobs.models import Job, JobState
from kafkadash.jobs.runner import enqueue, request_cancel
from kafkadash.planning.errors import ReassignmentErrorCode
from kafkadash.planning.models import Upload
from kafkadash.planning.options import format_megabytes
from kafkadash.planning.solver import request as planner
from kafkadash.planning.solver.request import PlanRequest
from kafkadash.planning.topology import ClusterTopology

ADD, DRAIN, REPLACE, REPAIR_RACKS = planner.ADD, planner.DRAIN, planner.REPLACE, planner.REPAIR_RACKS
SET_RF, BALANCE, LEADERS = planner.SET_RF, planner.BALANCE, planner.LEADERS
EXPLICIT, FINISH, ROLLBACK = planner.EXPLICIT, planner.FINISH, "rollback"
MODES = planner.MODES
"""Modes that the wizard offers; a rollback is proposed from the run that it takes back."""
OF_BROKERS = (ADD, DRAIN, REPLACE)
BROUGHT = (EXPLICIT, FINISH)
"""For which Kafka's JSON is brought."""
DISK_LIMIT = 0.8
LONGEST_TITLE = 200
_MOST_NAMED = 8
_LONGEST_PATTERN_NAMED = 60


@dataclass(frozen=True, slots=True)
class PlanInput:
    """``brokers`` are drained, added or replaced; ``upload`` is the sha256 of the stored JSON of a mode for which one
    is brought, '' before, ``name`` that of the file, for titles only.

    ``disk_limit`` (0 to 1 of each disk) bounds where replicas may go. ``of`` is the number of the request that a
    rollback takes back, ``since`` when its run ended (ISO 8601): facts from before do not show what it did. The others
    are as in ``PlanRequest``; ``replacements`` are in the order of ``brokers``, ``leaders`` is asked for balancing.
    """

    mode: str
    brokers: tuple[int, ...] = ()
    upload: str = ""
    name: str = ""
    ignore_racks: bool = False
    accept_fewer_racks: bool = False
    change_rf: bool = False
    disk_limit: float = DISK_LIMIT
    of: int = 0
    since: str = ""
    replacements: tuple[int, ...] = ()
    targets: tuple[int, ...] | None = None
    factor: int | None = None
    topics: tuple[str, ...] = ()
    pattern: str = ""
    excluded: str = ""
    eps: float | None = None
    most_replicas: int | None = None
    rebalance: bool = False
    leaders: bool = True
    internal: bool = True

    def request(self) -> PlanRequest:
        """Return the request for the planner; a rollback's rows are brought like those of an explicit assignment."""
        return PlanRequest(
            mode=EXPLICIT if self.mode == ROLLBACK else self.mode,
            brokers=self.brokers,
            replacements=tuple(sorted(set(self.replacements))),
            targets=self.targets,
            factor=self.factor,
            topics=self.topics,
            pattern=self.pattern,
            excluded=self.excluded,
            eps=self.eps,
            disk_limit=self.disk_limit,
            most_replicas=self.most_replicas,
            rebalance=self.rebalance,
            ignore_racks=self.ignore_racks,
            accept_fewer_racks=self.accept_fewer_racks,
            leaders=self.leaders,
            change_rf=self.resizes,
            internal=self.internal,
        )

    @property
    def resizes(self) -> bool:
        """Return whether the replication factor of a partition may change; what is approved says so."""
        return self.change_rf or self.mode in (SET_RF, FINISH)

    @property
    def may_lose_racks(self) -> bool:
        """Return whether partitions may be spread over racks worse than now; what is approved says so.

        A rollback makes racks as they were before the run that it takes back: that is always allowed.
        """
        return self.accept_fewer_racks or self.ignore_racks or self.mode == ROLLBACK

    @property
    def empties(self) -> bool:
        """The brokers that are named lose what they hold."""
        return self.mode in (DRAIN, REPLACE)

    @property
    def copies(self) -> bool:
        """The planner chooses where new replicas go."""
        return self.mode in planner.PLANNED_MODES and self.mode != LEADERS

    @property
    def may_choose_targets(self) -> bool:
        """Not where it is asked already who is given replicas."""
        return self.copies and (self.mode not in (ADD, REPLACE) or self.rebalance)

    @property
    def complete(self) -> bool:
        """Return whether there is something to plan."""
        needed: Mapping[str, object] = {
            ADD: self.brokers,
            DRAIN: self.brokers,
            REPLACE: self.brokers and self.replacements,
            SET_RF: self.factor,
            EXPLICIT: self.upload,
            FINISH: self.upload,
            ROLLBACK: self.of,
        }
        return bool(needed.get(self.mode, True))

    @property
    def title(self) -> str:
        """Title of the change until somebody gives it another one: what the change does."""
        return self._title()[:LONGEST_TITLE]

    @property
    def sentence(self) -> str:
        """Sentence that says in full what is to be done, for the person who decides about it."""
        own = {
            ADD: self._adds,
            DRAIN: self._drains,
            REPLACE: self._replaces,
            REPAIR_RACKS: self._repairs,
            SET_RF: self._sets_factor,
            BALANCE: self._balances,
            LEADERS: self._leads,
            FINISH: self._finishes,
            ROLLBACK: self._takes_back,
        }
        accepted = " Accepted: partitions may end in fewer racks." if self.accept_fewer_racks else ""
        return own.get(self.mode, self._gives)() + accepted

    @property
    def words(self) -> str:
        """Beside the first step of the wizard; '' while nothing is asked for."""
        if not self.complete:
            return ""
        if self.mode in OF_BROKERS:
            with_whom = f" with {_format_brokers(sorted(set(self.replacements)))}" if self.mode == REPLACE else ""
            return f"{self.mode} {_format_brokers(self.brokers)}{with_whom}"
        if self.mode == ROLLBACK:
            return f"roll back #{self.of}"
        if self.mode in BROUGHT:
            return self.name or "pasted"
        own = {REPAIR_RACKS: "repair racks", SET_RF: f"factor {self.factor}", LEADERS: "leaders"}
        words = own.get(self.mode) or self._balanced
        return f"{words}, some topics" if self.some_topics else words

    @property
    def some_topics(self) -> bool:
        """Not all of them are asked for."""
        return bool(self.topics or self.pattern or self.excluded)

    @property
    def aim(self) -> str:
        """Aim of a plan, to go on after "no plan that": "drains broker 3"."""
        own = {
            ADD: f"adds {broker_names(self.brokers)}",
            DRAIN: f"drains {broker_names(self.brokers)}",
            REPLACE: f"replaces {broker_names(self.brokers)} with {broker_names(sorted(set(self.replacements)))}",
            REPAIR_RACKS: "repairs the racks",
            SET_RF: f"gives these topics the replication factor {self.factor}",
            BALANCE: f"balances {self._balanced}",
        }
        return own.get(self.mode, "does this")

    @property
    def _balanced(self) -> str:
        """Return a text such as "replicas and disks"."""
        return join_items(
            ["replicas", *(["disks"] if self.eps is not None else []), *(["leaders"] if self.leaders else [])]
        )

    def _title(self) -> str:
        if self.mode in (ADD, DRAIN) and self.brokers:
            return f"{self.mode.capitalize()} {broker_names(self.brokers)}{self._of_topics}"
        if self.mode == REPLACE and self.brokers:
            by = f" with {_format_brokers(sorted(set(self.replacements)))}" if self.replacements else ""
            return f"Replace {broker_names(self.brokers)}{by}{self._of_topics}"
        if self.mode in OF_BROKERS:
            return f"{self.mode.capitalize()} brokers"
        if self.mode == SET_RF:
            number = "" if self.factor is None else f" {self.factor}"
            return f"{'Set' if self.factor else 'Change'} replication factor{number}{self._of_topics}"
        if self.mode == ROLLBACK:
            return f"Rollback of #{self.of}"
        own = {
            REPAIR_RACKS: f"Repair racks{self._of_topics}",
            BALANCE: f"Balance {self._balanced}{self._of_topics}",
            LEADERS: f"Balance leaders{self._of_topics}",
            FINISH: f"Finish {self.name or 'an earlier plan'}",
        }
        return own.get(self.mode) or (f"Reassign as in {self.name}" if self.name else "Reassign as given")

    @property
    def topics_words(self) -> str:
        """Return "all topics", "orders and clicks", "12 topics", or "topics matching “pay.*”, except “.*-dlq”"."""
        parts = []
        if self.topics:
            parts.append(join_items(self.topics) if len(self.topics) <= 2 else f"{len(self.topics):,} topics")
        if self.pattern:
            parts.append(f"topics matching “{_shorten_pattern(self.pattern)}”")
        without = f", except “{_shorten_pattern(self.excluded)}”" if self.excluded else ""
        return (join_items(parts) or "all topics") + without

    @property
    def _of_topics(self) -> str:
        return f" of {self.topics_words}" if self.some_topics else ""

    @property
    def _rest(self) -> str:
        """Sentence on the replicas that were not named."""
        if self.rebalance:
            return "Other replicas may move too, to rebalance counts within each rack."
        return "No other replicas move."

    def _adds(self) -> str:
        return f"Move an even share of the replicas{self._of_topics} to {broker_names(self.brokers)}. {self._rest}"

    def _drains(self) -> str:
        return f"Move all replicas{self._of_topics} off {broker_names(self.brokers)}. {self._rest}"

    def _replaces(self) -> str:
        to = broker_names(sorted(set(self.replacements)))
        return f"Move all replicas{self._of_topics} from {broker_names(self.brokers)} to {to}. {self._rest}"

    def _repairs(self) -> str:
        rest = self._rest if self.rebalance else "Only partitions that violate rack awareness move."
        return f"Spread the replicas of all partitions of {self.topics_words} evenly over the racks. {rest}"

    def _sets_factor(self) -> str:
        skipped = "" if self.internal else " Internal topics that are not named keep their factor."
        return f"Set replication factor {self.factor} for {self.topics_words}. {self._rest}{skipped}"

    def _balances(self) -> str:
        disks = [] if self.eps is None else [f"disk usage (within {100 * self.eps:g} % of the rack mean)"]
        leaders = ["leaders"] if self.leaders else []
        what = join_items(["replica counts", *disks, *leaders])
        return f"Balance {what} for {self.topics_words}, with minimal data movement."

    def _leads(self) -> str:
        return f"Balance leaders{self._of_topics} by reordering replicas. No data moves."

    def _finishes(self) -> str:
        return f"Assign the replicas given in {self._brought}, where not done yet."

    def _takes_back(self) -> str:
        return (
            f"Restore the original replicas of the partitions that #{self.of} moved, in their original order. "
            "The rack spread becomes as before, even if that means fewer racks. No other replicas move."
        )

    def _gives(self) -> str:
        return f"Assign the replicas given in {self._brought}. No other replicas move."

    @property
    def _brought(self) -> str:
        return self.name or "the uploaded JSON"


def broker_names(brokers: Sequence[int]) -> str:
    """Return a text such as "broker 3", "brokers 3 and 7", "brokers 1, 2, … (40 in total)"."""
    if len(brokers) <= _MOST_NAMED:
        return f"{choose_plural('broker|brokers', len(brokers))} {join_items([str(b) for b in brokers])}"
    return f"brokers {', '.join(map(str, brokers[:_MOST_NAMED]))}, … ({len(brokers)} in total)"


def options_of(stored: Mapping[str, Any]) -> RunOptions | None:
    """``ChangeRequest.options`` of the kind; None before the limits were given."""
    if not stored:
        return None
    return RunOptions(**{field.name: stored[field.name] for field in fields(RunOptions) if field.name in stored})


def options_json(options: RunOptions, plan_input: PlanInput) -> dict[str, Any]:
    """Return the options as stored: with the disk limit, for the pages; the digest covers ``RunOptions.as_json``."""
    return {**asdict(options), "disk_limit_percent": round(100 * plan_input.disk_limit, 2)}


def _format_brokers(brokers: Sequence[int]) -> str:
    more = len(brokers) - _MOST_NAMED
    return ", ".join(map(str, brokers[:_MOST_NAMED])) + (f" and {more} more" if more > 0 else "")


def _shorten_pattern(pattern: str) -> str:
    return pattern if len(pattern) <= _LONGEST_PATTERN_NAMED else f"{pattern[: _LONGEST_PATTERN_NAMED - 1]}…"


LARGEST_BYTES = 50_000_000
SHOWN_BYTES = 200_000
"""Bytes of a pasted plan; a longer one is not put into the text field again."""
_LONGEST_NAME = 120


class TooLarge(UserError):
    """A file or text that is not taken, with both sizes."""

    def __init__(self, size: int) -> None:
        most = LARGEST_BYTES // 10**6
        super().__init__(ReassignmentErrorCode.FILE_TOO_LARGE, size=f"{size / 1e6:,.1f}", most=most)


@dataclass(frozen=True, slots=True)
class BroughtFile:
    """A JSON file on its way into a draft; ``data`` is zlib of its ``size`` bytes, ``name`` '' where it was pasted."""

    name: str
    size: int
    sha256: str
    data: bytes

    @property
    def content(self) -> bytes:
        return zlib.decompress(self.data)


def from_file(file: UploadedFile[Any]) -> BroughtFile:
    """Reads the file in portions, and not at all if its size says that it is too large. Raises TooLarge."""
    if file.size is not None and file.size > LARGEST_BYTES:
        raise TooLarge(file.size)
    return _pack_upload(shown_name(file.name or ""), file.chunks())


def from_text(text: str) -> BroughtFile:
    """Raises TooLarge."""
    content = text.encode()
    if len(content) > LARGEST_BYTES:
        raise TooLarge(len(content))
    return _pack_upload("", [content])


def store_upload(change: ChangeRequest, brought: BroughtFile) -> None:
    """In place of what was there. The caller's transaction holds the request's edit as well."""
    Upload.objects.update_or_create(
        request=change,
        defaults={"name": brought.name, "size": brought.size, "sha256": brought.sha256, "data": brought.data},
    )


def content_of(upload: Upload) -> bytes:
    """Return the content of the upload as it was received."""
    return zlib.decompress(upload.data)


def sent_too_much(query: QueryDict) -> str:
    """The sentence for ``?too_large=<bytes>``, by which ``core.middleware`` tells what it did not take; '' else."""
    size = query.get("too_large", "")
    return str(TooLarge(int(size))) if size.isascii() and size.isdigit() and len(size) < 16 else ""


def shown_name(name: str) -> str:
    """The last part of a file's name, without what cannot be printed; never used as a path."""
    last = name.replace("\\", "/").rpartition("/")[2]
    clean = "".join(c for c in last if c.isprintable()).strip()
    return clean if len(clean) <= _LONGEST_NAME else f"{clean[: _LONGEST_NAME - 1]}…"


def _pack_upload(name: str, chunks: Iterable[bytes]) -> BroughtFile:
    size, digest, packer, packed = 0, hashlib.sha256(), zlib.compressobj(6), bytearray()
    for chunk in chunks:
        size += len(chunk)
        if size > LARGEST_BYTES:
            raise TooLarge(size)
        digest.update(chunk)
        packed += packer.compress(chunk)
    packed += packer.flush()
    return BroughtFile(name, size, digest.hexdigest(), bytes(packed))


KIND = "reassignment"
PLAN_JOB = "reassign.plan"
OPEN = (JobState.QUEUED, JobState.RUNNING)
STEPS = (("what", "Scope"), ("limits", "Limits"), ("plan", "Plan"), ("why", "Reason"))


@dataclass(frozen=True, slots=True)
class WizardStep:
    """Step of the wizard: ``url`` is empty for a step that is not possible yet."""

    number: int
    name: str
    label: str
    url: str
    done: bool
    current: bool
    words: str


@dataclass(frozen=True)
class PlanDraft:
    """A request of this kind as its author left it."""

    change: ChangeRequest

    @cached_property
    def plan_input(self) -> PlanInput:
        return unpack_dataclass(PlanInput, self.change.input)

    @cached_property
    def options(self) -> RunOptions | None:
        return options_of(self.change.options)

    @property
    def numbered(self) -> bool:
        """Return whether pages show its number: until it is edited, a draft may be deleted without anybody's act."""
        return self.change.version > 1 or bool(self.change.origin_word)

    @property
    def planned(self) -> bool:
        return self.change.artifact_id is not None

    @property
    def moves_nothing(self) -> bool:
        """Return whether the plan has no rows, so that there is nothing to propose."""
        return self.change.artifact is not None and not self.change.artifact.rows

    def is_outdated(self, now: datetime) -> bool:
        """Return whether planning again may give another plan: the cluster changed, or the plan is checked no more."""
        planned_at = self.change.topology_at
        content = [check["result"] for check in self.change.checks if check["about"] == CheckSubject.CONTENT]
        return planned_at is None or planned_at < now - DRAFTS_FOR or CheckResult.FAILED in content

    @cached_property
    def job(self) -> Job | None:
        """The last planning of what is asked for now."""
        job = self.change.job
        return job if job and job.input.get("version") == self.change.version else None

    @property
    def _limits_words(self) -> str:
        """Return a text such as "5 targets, 80 % disk", or the throttle of a plan that was uploaded."""
        if self.options is None:
            return ""
        if not self.plan_input.copies:
            return f"{format_megabytes(self.options.throttle)} MB/s"
        targets = self.plan_input.targets if self.plan_input.may_choose_targets else None
        named = "" if targets is None else f"{choose_plural('# target|# targets', len(targets))}, "
        return f"{named}{100 * self.plan_input.disk_limit:g} % disk"

    def possible(self, step: str) -> bool:
        return {
            "what": True,
            "limits": self.plan_input.complete,
            "plan": self.plan_input.complete and self.options is not None,
            "why": self.planned and not self.moves_nothing,
        }[step]

    @property
    def plan_requested(self) -> bool:
        """Return whether there is a plan of the present version, or was an attempt to make one."""
        return self.planned or self.job is not None

    @property
    def next_step(self) -> str:
        """Name of the first step that is not done, where the wizard continues."""
        if not self.plan_input.complete:
            return "what"
        if self.options is None or not self.plan_requested:
            return "limits"
        return "why" if self.possible("why") else "plan"

    def steps(self, current: str) -> list[WizardStep]:
        """All four, for the stepper."""
        done = {
            "what": (self.plan_input.complete, self.plan_input.words),
            "limits": (self.options is not None, self._limits_words),
            "plan": (self.planned, ""),
            "why": (False, ""),
        }
        return [
            WizardStep(
                number=number,
                name=name,
                label=label,
                url=step_url(self.change.pk, name)
                if self.possible(name) and (name != "plan" or self.plan_requested)
                else "",
                done=done[name][0] and name != current,
                current=name == current,
                words=done[name][1],
            )
            for number, (name, label) in enumerate(STEPS, start=1)
        ]


def step_url(number: int, step: str) -> str:
    return reverse(f"planning:{step}", args=[number])


def edit_url(change: ChangeRequest) -> str:
    """Return the URL of the step where editing of a draft continues."""
    return step_url(change.pk, PlanDraft(change).next_step)


def begin_draft(
    cluster: Cluster,
    user: User,
    mode: str,
    brokers: tuple[int, ...],
    request: HttpRequest | None = None,
    *,
    disks: bool = False,
) -> ChangeRequest:
    """A draft on the server from the first step on. ``disks``: a plan that balances also evens out disk usage."""
    eps = planner.EPS if disks and mode == BALANCE else None
    plan_input = PlanInput(mode, brokers=brokers if mode in OF_BROKERS else (), eps=eps, internal=mode != SET_RF)
    return drafting.create_draft(
        cluster, KIND, user, title=plan_input.title, input=pack_dataclass(plan_input), options={}, request=request
    )


def save_what(
    draft: PlanDraft,
    user: User,
    version: int,
    plan_input: PlanInput,
    request: HttpRequest,
    brought: BroughtFile | None = None,
) -> None:
    """Save what is asked for; a plan for something else becomes void. Raises EditedMeanwhile and ChangeRefused."""
    before = draft.plan_input
    fields: dict[str, Any] = {"input": pack_dataclass(plan_input)}
    if draft.change.title in ("", before.title, PlanInput(before.mode).title):
        fields["title"] = plan_input.title
    if draft.options is not None:
        fields["options"] = options_json(
            replace(draft.options, change_rf=plan_input.resizes, may_lose_racks=plan_input.may_lose_racks), plan_input
        )
    with transaction.atomic():
        drafting.edit_draft(draft.change, user, version, request=request, **fields)
        if brought is not None:
            store_upload(draft.change, brought)
    stop_planning(draft.change)


def save_limits(
    draft: PlanDraft,
    user: User,
    version: int,
    plan_input: PlanInput,
    options: RunOptions,
    request: HttpRequest | None = None,
) -> None:
    """How it may be run. Raises EditedMeanwhile and Refused.

    Of this the disk limit makes a plan void, and so does the election: who leads afterwards stands in its report.
    """
    elects_as_before = draft.options is None or draft.options.elect_leaders == options.elect_leaders
    drafting.edit_draft(
        draft.change,
        user,
        version,
        input=pack_dataclass(plan_input),
        options=options_json(options, plan_input),
        drop_plan=None if elects_as_before else True,
        request=request,
    )
    stop_planning(draft.change)


def start_planning(change: ChangeRequest, user: User, version: int, purpose: str = "plan") -> Job:
    """A job that plans what is asked for in this version; one that is under way already for this is enough."""
    with transaction.atomic():
        held = (
            ChangeRequest.objects.select_for_update(of=("self",), no_key=True)
            .select_related("job", "cluster")
            .get(pk=change.pk)
        )
        running = held.job
        wanted = {"change": held.pk, "version": version, "purpose": purpose}
        # A refresh that was under way when the request was taken back to a draft makes no plan for the draft.
        if running and running.state in OPEN and running.input == wanted and version == held.version:
            return running
        if held.version != version:
            raise ChangeRefused(ReassignmentErrorCode.EDITED_BEFORE_PLANNED)
        if purpose == "plan" and held.state != RequestState.DRAFT:
            raise ChangeRefused(ReassignmentErrorCode.ONLY_A_DRAFT_IS_PLANNED, number=held.pk)
        job = enqueue(
            PLAN_JOB,
            cluster=held.cluster,
            requested_by=user,
            input=wanted,
        )
        ChangeRequest.objects.filter(pk=held.pk).update(job=job)
    stop_planning(held)
    return job


def stop_planning(change: ChangeRequest) -> None:
    """The planning that ``change`` was read with, if it is still under way."""
    if change.job is not None and change.job.state in OPEN:
        request_cancel(change.job.pk)


@dataclass(frozen=True, slots=True)
class WayBack:
    """``rows`` have the original replicas in order as targets; ``left_out`` says of each other row of the run why."""

    rows: Sequence[PartitionMove]
    left_out: Sequence[InputProblem]


@dataclass(frozen=True, slots=True)
class RollbackSource:
    """Runs as rollbacks read them; execution registers it, as planning knows nothing of runs."""

    describe_left: Callable[[int], str]
    """The number of a request → the rows of its run that a rollback leaves as they are, in a sentence or ''."""
    original_rows: Callable[[int, ClusterTopology], WayBack]


_rollback_source: RollbackSource | None = None


def register_rollback_source(source: RollbackSource) -> None:
    global _rollback_source  # noqa: PLW0603  set once, when apps are ready
    _rollback_source = source


def rollback_source() -> RollbackSource:
    assert _rollback_source is not None  # registered by ExecutionConfig.ready
    return _rollback_source
