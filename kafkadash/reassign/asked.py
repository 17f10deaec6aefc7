"""What the author of a reassignment asks for: ``ChangeRequest.input`` of the kind "reassignment", and its words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from kafkadash.domain.plan import Options
from kafkadash.domain.planner import request as planner
from kafkadash.domain.planner.request import PlanRequest
from kafkadash.domain.wording import listed

ADD, DRAIN, REPLACE, REPAIR_RACKS = planner.ADD, planner.DRAIN, planner.REPLACE, planner.REPAIR_RACKS
SET_RF, BALANCE, LEADERS = planner.SET_RF, planner.BALANCE, planner.LEADERS
EXPLICIT, FINISH, ROLLBACK = planner.EXPLICIT, planner.FINISH, "rollback"
MODES = planner.MODES
"""What is chosen in the wizard; a rollback is proposed from the run that it takes back."""
OF_BROKERS = (ADD, DRAIN, REPLACE)
BROUGHT = (EXPLICIT, FINISH)
"""For which Kafka's JSON is brought."""
DISK_LIMIT = 0.8
LONGEST_TITLE = 200
_MOST_NAMED = 8
_LONGEST_PATTERN_NAMED = 60
_LISTS = ("brokers", "replacements", "targets", "topics")
_OF_EVERY_RELEASE = (
    "mode",
    "brokers",
    "upload",
    "name",
    "ignore_racks",
    "accept_fewer_racks",
    "change_rf",
    "disk_limit",
    "of",
    "since",
)
"""What is always stored. The others only where they are asked for: the release before this one reads no others."""


@dataclass(frozen=True, slots=True)
class Asked:
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

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Asked:
        """What an earlier release did not know is as by default."""
        known: dict[str, Any] = {field.name: stored[field.name] for field in fields(cls) if field.name in stored}
        lists = {name: tuple(known[name]) for name in _LISTS if known.get(name) is not None}
        return cls(**{**known, **lists})

    def as_json(self) -> dict[str, Any]:
        found = asdict(self)
        kept = {
            f.name: found[f.name] for f in fields(self) if f.name in _OF_EVERY_RELEASE or found[f.name] != f.default
        }
        return {name: list(value) if isinstance(value, tuple) else value for name, value in kept.items()}

    def request(self) -> PlanRequest:
        """As the planner is asked; a rollback's rows are brought like those of an explicit assignment."""
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
        )

    @property
    def resizes(self) -> bool:
        """Whether the replication factor of a partition may change; what is approved says so."""
        return self.change_rf or self.mode in (SET_RF, FINISH)

    @property
    def may_lose_racks(self) -> bool:
        """Whether partitions may be spread over racks worse than now; what is approved says so.

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
        """There is something to plan."""
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
        """What the change does, as it is called until somebody gives it another name."""
        return self._title()[:LONGEST_TITLE]

    @property
    def sentence(self) -> str:
        """What is to be done, in full, for whoever decides about it."""
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
        accepted = " Partitions may end in fewer racks: that was accepted." if self.accept_fewer_racks else ""
        return own.get(self.mode, self._gives)() + accepted

    @property
    def words(self) -> str:
        """Beside the first step of the wizard; '' while nothing is asked for."""
        if not self.complete:
            return ""
        if self.mode in OF_BROKERS:
            with_whom = f" with {_few(sorted(set(self.replacements)))}" if self.mode == REPLACE else ""
            return f"{self.mode} {_few(self.brokers)}{with_whom}"
        if self.mode == ROLLBACK:
            return f"take #{self.of} back"
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
        """What a plan does, to go on after "no plan that": "drains broker 3"."""
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
        """ "replicas and disks"."""
        return listed(
            ["replicas", *(["disks"] if self.eps is not None else []), *(["leaders"] if self.leaders else [])]
        )

    def _title(self) -> str:
        if self.mode in (ADD, DRAIN) and self.brokers:
            return f"{self.mode.capitalize()} {broker_names(self.brokers)}{self._of_topics}"
        if self.mode == REPLACE and self.brokers:
            by = f" with {_few(sorted(set(self.replacements)))}" if self.replacements else ""
            return f"Replace {broker_names(self.brokers)}{by}{self._of_topics}"
        if self.mode in OF_BROKERS:
            return f"{self.mode.capitalize()} brokers"
        if self.mode == SET_RF:
            number = "" if self.factor is None else f" {self.factor}"
            return f"{'Set' if self.factor else 'Change the'} replication factor{number}{self._of_topics}"
        if self.mode == ROLLBACK:
            return f"Rollback of #{self.of}"
        own = {
            REPAIR_RACKS: f"Repair racks{self._of_topics}",
            BALANCE: f"Balance {self._balanced}{self._of_topics}",
            LEADERS: f"Even out leaders{self._of_topics}",
            FINISH: f"Finish {self.name or 'an earlier plan'}",
        }
        return own.get(self.mode) or (f"Reassign as in {self.name}" if self.name else "Reassign as given")

    @property
    def topics_words(self) -> str:
        """ "all topics", "orders and clicks", "12 topics", "topics like “pay.*”, without “.*-dlq”"."""
        parts = []
        if self.topics:
            parts.append(listed(self.topics) if len(self.topics) <= 2 else f"{len(self.topics):,} topics")
        if self.pattern:
            parts.append(f"topics like “{_short(self.pattern)}”")
        without = f", without “{_short(self.excluded)}”" if self.excluded else ""
        return (listed(parts) or "all topics") + without

    @property
    def _of_topics(self) -> str:
        return f" of {self.topics_words}" if self.some_topics else ""

    @property
    def _rest(self) -> str:
        """What becomes of the replicas that nobody named."""
        if self.rebalance:
            return "Others may move too, until all brokers hold about as many."
        return "Nothing else moves."

    def _adds(self) -> str:
        their = "its" if len(self.brokers) == 1 else "their"
        return f"Give {broker_names(self.brokers)} {their} share of the replicas{self._of_topics}. {self._rest}"

    def _drains(self) -> str:
        return f"Move every replica{self._of_topics} off {broker_names(self.brokers)}. {self._rest}"

    def _replaces(self) -> str:
        to = broker_names(sorted(set(self.replacements)))
        return f"Move every replica{self._of_topics} from {broker_names(self.brokers)} to {to}. {self._rest}"

    def _repairs(self) -> str:
        rest = self._rest if self.rebalance else "Only partitions that are spread wrongly move."
        return f"Spread the replicas of every partition of {self.topics_words} evenly over the racks. {rest}"

    def _sets_factor(self) -> str:
        replicas = "1 replica" if self.factor == 1 else f"{self.factor} replicas"
        return f"Give every partition of {self.topics_words} {replicas}. {self._rest}"

    def _balances(self) -> str:
        disks = [] if self.eps is None else [f"their disks to within {100 * self.eps:g} % of the mean of their rack"]
        leaders = ["how many partitions they lead"] if self.leaders else []
        what = listed(["how many replicas brokers hold", *disks, *leaders])
        return f"Even out {what}, for {self.topics_words}, with as little as that takes."

    def _leads(self) -> str:
        return f"Even out who leads{self._of_topics} by another order of replicas. No data moves."

    def _finishes(self) -> str:
        return (
            f"Give the partitions named in {self._brought} the replicas that stand there, where that is not done yet."
        )

    def _takes_back(self) -> str:
        return (
            f"Give the partitions that #{self.of} moved their original replicas back, in their original order. "
            "Racks become as they were before, also where that is fewer. Nothing else moves."
        )

    def _gives(self) -> str:
        return f"Give the partitions named in {self._brought} the replicas that stand there. Nothing else moves."

    @property
    def _brought(self) -> str:
        return self.name or "the JSON that was brought"


def broker_names(brokers: Sequence[int]) -> str:
    """ "broker 3", "brokers 3 and 7", "brokers 1, 2, … (40 of them)"."""
    if len(brokers) == 1:
        return f"broker {brokers[0]}"
    if len(brokers) <= _MOST_NAMED:
        return f"brokers {listed([str(b) for b in brokers])}"
    return f"brokers {', '.join(map(str, brokers[:_MOST_NAMED]))}, … ({len(brokers)} of them)"


def options_of(stored: Mapping[str, Any]) -> Options | None:
    """``ChangeRequest.options`` of the kind; None before the limits were given."""
    if not stored:
        return None
    return Options(**{field.name: stored[field.name] for field in fields(Options) if field.name in stored})


def options_json(options: Options, asked: Asked) -> dict[str, Any]:
    """As they are stored: with the disk limit, for the pages; the digest covers ``Options.as_json`` alone."""
    return {**asdict(options), "disk_limit_percent": round(100 * asked.disk_limit, 2)}


def _few(brokers: Sequence[int]) -> str:
    more = len(brokers) - _MOST_NAMED
    return ", ".join(map(str, brokers[:_MOST_NAMED])) + (f" and {more} more" if more > 0 else "")


def _short(pattern: str) -> str:
    return pattern if len(pattern) <= _LONGEST_PATTERN_NAMED else f"{pattern[: _LONGEST_PATTERN_NAMED - 1]}…"
