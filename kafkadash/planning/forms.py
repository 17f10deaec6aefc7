"""Forms of the wizard that proposes a reassignment, judged against the cluster as it was last read.

Errors are shown at their field, and the input stays.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from functools import cached_property
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.db.models import Q
from django.forms.utils import ErrorDict
from django.http import QueryDict
from django.utils import timezone

from kafkadash.accounts.errors import form_error, lazy_text
from kafkadash.changes.errors import ChangeErrorCode, ChangeRefused
from kafkadash.changes.plan import PlanErrorCode, RunOptions, UnfitReason
from kafkadash.changes.request_validation import refuse_old_facts
from kafkadash.clusters.forms import CodedForm
from kafkadash.clusters.models import Cluster
from kafkadash.core.formatting import join_items
from kafkadash.core.messages import coded, message_cause, message_text, reason_message
from kafkadash.core.problems import InputProblem
from kafkadash.monitoring.brokers import broker_state, directory_row
from kafkadash.monitoring.freshness import freshness_of
from kafkadash.monitoring.models import BrokerState, BrokerWeights, CollectorKind, CollectorRun
from kafkadash.planning.errors import ReassignmentErrorCode
from kafkadash.planning.kafka_json import read_reassignment
from kafkadash.planning.options import (
    SLOW_BELOW,
    BadRate,
    bounds_of,
    bytes_per_second,
    format_megabytes,
    format_rate,
)
from kafkadash.planning.proposal import (
    ADD,
    BALANCE,
    DRAIN,
    EXPLICIT,
    FINISH,
    LEADERS,
    LONGEST_TITLE,
    MODES,
    OF_BROKERS,
    REPAIR_RACKS,
    REPLACE,
    SET_RF,
    BroughtFile,
    PlanInput,
    TooLarge,
    from_file,
    from_text,
)
from kafkadash.planning.solver.explicit import plan_explicitly, plan_unfinished
from kafkadash.planning.solver.request import EPS
from kafkadash.planning.stored_topology import load_topology
from kafkadash.planning.topic_choice import (
    BadChoice,
    CountedTopics,
    TopicPicker,
    TopicSize,
    build_picker,
    count_choice,
    names_in,
    read_topics,
)
from kafkadash.topic_rules.models import load_rules
from kafkadash.topic_rules.rules import RuledItem, find_broken


@dataclass(frozen=True, slots=True)
class BrokerChoice:
    """Broker that may be chosen. ``percent``: of its fullest directory, None where not known.

    ``takes``: it is up, so it may be given replicas. ``checked`` and ``role`` are as the form has them; brokers have a
    role where brokers are replaced.
    """

    id: int
    rack: str | None
    host: str
    replicas: int
    leaders: int
    gone: bool
    takes: bool
    state: str
    word: str
    replica_bytes: int | None
    percent: float | None
    checked: bool = False
    role: str = ""


def broker_choices(cluster: Cluster, now: datetime) -> list[BrokerChoice]:
    """By id. A broker that is gone is one of them while replicas are assigned to it. Three queries."""
    run = CollectorRun.objects.filter(cluster=cluster, kind=CollectorKind.METADATA).first()
    freshness = freshness_of(run, now)
    weights = {w.broker_id: w for w in BrokerWeights.objects.filter(cluster=cluster).defer("data")}
    rows = BrokerState.objects.filter(Q(gone_at=None) | Q(replicas__gt=0), cluster=cluster).order_by("broker_id")
    choices = []
    for row in rows.defer("config"):
        state, word = broker_state(row, freshness)
        weight = weights.get(row.broker_id)
        used = [d.percent for d in map(directory_row, weight.dirs) if d.percent is not None] if weight else []
        choices.append(
            BrokerChoice(
                id=row.broker_id,
                rack=row.rack,
                host=row.host,
                replicas=row.replicas,
                leaders=row.leaders,
                gone=row.gone_at is not None,
                takes=row.gone_at is None and not row.fenced and row.silent_since is None,
                state=state,
                word=word,
                replica_bytes=weight.replica_bytes if weight else None,
                percent=max(used, default=None),
            )
        )
    return choices


def without_rack(choices: Sequence[BrokerChoice]) -> list[int]:
    """Registered brokers that name no rack while others do; empty where all do, or none."""
    here = [choice for choice in choices if not choice.gone]
    lacking = [choice.id for choice in here if choice.rack is None]
    return lacking if len(lacking) < len(here) else []


LONGEST_WHY = 4000
MOST_PARALLEL = 1000
_ID = re.compile(r"\d{1,9}")
_WHOLE = re.compile(r"\d{1,6}")
_STAMP = "%Y-%m-%dT%H:%M:%SZ"


class WizardForm(CodedForm):
    """``version`` is that of the draft that was on the page."""

    version = forms.IntegerField(
        widget=forms.HiddenInput,
        error_messages={
            "required": lazy_text(ReassignmentErrorCode.PAGE_INCOMPLETE),
            "invalid": lazy_text(ReassignmentErrorCode.PAGE_INCOMPLETE),
        },
    )

    def in_words(self, values: Mapping[str, Any]) -> dict[str, str]:
        """Label → what the values say, to set two versions side by side."""
        return {str(f.label): in_words(values.get(name)) for name, f in self.fields.items() if name != "version"}

    def differences(self, stored: Mapping[str, Any]) -> list[tuple[str, str, str]]:
        """(label, typed here, stored now) where they differ."""
        mine, theirs = self.in_words(self.cleaned_data), self.in_words(stored)
        return [(label, mine[label], theirs[label]) for label in mine if mine[label] != theirs[label]]


class NewForm(CodedForm):
    """Form of the first step: cluster and mode. ``brokers`` and ``disks`` come from the pages that link to the form."""

    cluster = forms.ChoiceField(label="Cluster", required=False)
    mode = forms.ChoiceField(
        label="Change type",
        required=False,
        choices=[(mode, mode) for mode in MODES],
    )
    brokers = forms.CharField(label="Brokers", required=False, widget=forms.HiddenInput)
    disks = forms.BooleanField(label="Balance disk usage", required=False, widget=forms.HiddenInput)

    def __init__(self, *args: Any, clusters: Sequence[Cluster], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.clusters = {cluster.slug: cluster for cluster in clusters}
        self.fields["cluster"].choices = [(c.slug, c.name) for c in clusters]  # type: ignore[attr-defined]
        self.fields["cluster"].error_messages["invalid_choice"] = message_text(
            ReassignmentErrorCode.CLUSTER_NOT_ALLOWED
        )
        self.fields["mode"].error_messages["invalid_choice"] = message_text(ReassignmentErrorCode.MODE_UNKNOWN)

    def clean_cluster(self) -> Cluster:
        cluster = self.clusters.get(self.cleaned_data["cluster"])
        if cluster is None:
            raise form_error(ReassignmentErrorCode.CLUSTER_MISSING)
        if cluster.read_only:
            raise form_error(ReassignmentErrorCode.CLUSTER_READ_ONLY, cluster=cluster.name)
        return cluster

    def clean_mode(self) -> str:
        mode: str = self.cleaned_data["mode"]
        if not mode:
            raise form_error(ReassignmentErrorCode.MODE_MISSING)
        return mode

    def clean_brokers(self) -> tuple[int, ...]:
        return broker_ids(self.cleaned_data["brokers"])


class LimitsForm(WizardForm):
    """Rates in MB/s, the window in UTC; ``inbound`` is what producers write to what moves, None while not known.

    Bounds that are left empty follow the throttle (``bounds_of``).
    ``choices``: brokers, where it is asked which of them may be given replicas.
    """

    throttle = forms.CharField(label="Throttle", required=False)
    throttle_min = forms.CharField(label="Minimum", required=False)
    throttle_max = forms.CharField(label="Maximum", required=False)
    per_broker = forms.CharField(label="Concurrent moves per broker", required=False)
    per_cluster = forms.CharField(label="Concurrent moves in the cluster", required=False)
    not_before = forms.DateTimeField(label="Not before", required=False)
    not_after = forms.DateTimeField(label="Not after", required=False)
    disk_limit = forms.CharField(label="Disk limit", required=False)
    targets = forms.MultipleChoiceField(label="Allowed target brokers", required=False)
    most_replicas = forms.CharField(label="Max replicas per broker", required=False)
    elect_leaders = forms.BooleanField(label="Elect preferred leaders afterwards", required=False)
    confirmed = forms.BooleanField(label="Confirm this rate", required=False)

    def __init__(
        self,
        *args: Any,
        now: datetime,
        inbound: float | None = None,
        plan_input: PlanInput | None = None,
        choices: Sequence[BrokerChoice] = (),
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        leaving = set(plan_input.brokers) if plan_input is not None and plan_input.empties else set()
        self.now, self.inbound, self.choices = now, inbound, [one for one in choices if one.id not in leaving]
        if plan_input is None or not plan_input.copies:
            del self.fields["most_replicas"]
        if plan_input is None or not plan_input.may_choose_targets:
            del self.fields["targets"]
        else:
            self.fields["targets"].choices = [(str(c.id), str(c.id)) for c in choices]  # type: ignore[attr-defined]
            self.fields["targets"].error_messages["invalid_choice"] = message_text(
                ReassignmentErrorCode.TARGET_NOT_THERE
            )
        self.asks_twice = ""
        for name in ("not_before", "not_after"):
            self.fields[name].error_messages["invalid"] = message_text(ReassignmentErrorCode.TIME_UNREADABLE)

    def clean_throttle(self) -> int:
        return self._rate("throttle")

    def clean_throttle_min(self) -> int | None:
        return self._rate("throttle_min") if self.cleaned_data["throttle_min"].strip() else None

    def clean_throttle_max(self) -> int | None:
        return self._rate("throttle_max") if self.cleaned_data["throttle_max"].strip() else None

    def clean_per_broker(self) -> int:
        return self._whole("per_broker", "5")

    def clean_per_cluster(self) -> int:
        return self._whole("per_cluster", "50")

    def clean_not_before(self) -> datetime | None:
        return self._moment("not_before")

    def clean_not_after(self) -> datetime | None:
        return self._moment("not_after")

    @property
    def shows_advanced(self) -> bool:
        """Return whether a field under "Advanced" differs from its default, or has to do with an error."""
        plain = {"throttle_min": "", "throttle_max": "", "per_broker": "5", "per_cluster": "50"}
        differ = any(str(self[name].value() or "") != value for name, value in plain.items())
        return differ or bool(self.errors.keys() & {*plain, "throttle"})

    @property
    def target_rows(self) -> list[BrokerChoice]:
        """Rows of the brokers that are up, as on the page; none chosen means every broker that can take replicas."""
        chosen = {str(one) for one in self["targets"].value() or ()}
        return [
            replace(one, checked=str(one.id) in chosen) for one in self.choices if one.takes or str(one.id) in chosen
        ]

    def clean_targets(self) -> tuple[int, ...] | None:
        ids = tuple(sorted(int(one) for one in self.cleaned_data["targets"]))
        if ids and not any(choice.takes and choice.id in ids for choice in self.choices):
            raise form_error(PlanErrorCode.NO_TARGET)
        return ids or None

    def clean_most_replicas(self) -> int | None:
        typed = self.cleaned_data["most_replicas"].strip()
        if typed and (not _WHOLE.fullmatch(typed) or int(typed) < 1):
            raise form_error(ReassignmentErrorCode.NO_WHOLE_NUMBER, example="4000")
        return int(typed) if typed else None

    def build_input(self, before: PlanInput) -> PlanInput:
        """With the limits that the plan itself is made under."""
        own = {name: self.cleaned_data[name] for name in ("targets", "most_replicas") if name in self.fields}
        return replace(before, disk_limit=self.cleaned_data["disk_limit"], **own)

    def clean_disk_limit(self) -> float:
        typed = self.cleaned_data["disk_limit"].strip().removesuffix("%").strip()
        if not re.fullmatch(r"\d{1,3}(\.\d{1,2})?", typed):
            raise form_error(ReassignmentErrorCode.PERCENT_UNREADABLE)
        percent = float(typed)
        if not 1 <= percent <= 100:
            raise form_error(ReassignmentErrorCode.PERCENT_OUTSIDE)
        return round(percent / 100, 4)

    def clean(self) -> None:
        values = self.cleaned_data
        rate = values.get("throttle")
        if rate is not None:
            for name, bound in zip(("throttle_min", "throttle_max"), bounds_of(rate, self.inbound), strict=True):
                if name in values and values[name] is None:
                    values[name] = bound
        low, high = values.get("throttle_min"), values.get("throttle_max")
        if low is not None and high is not None and low > high:
            self.add_error(
                "throttle_min",
                form_error(
                    ReassignmentErrorCode.LOWEST_ABOVE_HIGHEST, low=format_megabytes(low), high=format_megabytes(high)
                ),
            )
        elif rate is not None and low is not None and rate < low:
            self.add_error("throttle", form_error(ReassignmentErrorCode.STARTS_BELOW, low=format_megabytes(low)))
        elif rate is not None and high is not None and rate > high:
            self.add_error("throttle", form_error(ReassignmentErrorCode.STARTS_ABOVE, high=format_megabytes(high)))
        k, n = values.get("per_broker"), values.get("per_cluster")
        if k is not None and n is not None and k > n:
            self.add_error("per_broker", form_error(ReassignmentErrorCode.MORE_THAN_THE_CLUSTER, most=n))
        self._clean_window(values.get("not_before"), values.get("not_after"))
        if low is not None and rate is not None and not self.errors:
            self._ask_twice(low, rate)

    def options(self, plan_input: PlanInput) -> RunOptions:
        values = self.cleaned_data
        return RunOptions(
            throttle=values["throttle"],
            throttle_min=values["throttle_min"],
            throttle_max=values["throttle_max"],
            per_broker=values["per_broker"],
            per_cluster=values["per_cluster"],
            not_before=_stamp(values["not_before"]),
            not_after=_stamp(values["not_after"]),
            elect_leaders=values["elect_leaders"],
            change_rf=plan_input.resizes,
            may_lose_racks=plan_input.may_lose_racks,
        )

    def in_words(self, values: Mapping[str, Any]) -> dict[str, str]:
        words = super().in_words({**values, "confirmed": None})
        words.pop(str(self.fields["confirmed"].label))
        for name in ("throttle", "throttle_min", "throttle_max"):
            if isinstance(values.get(name), int):
                words[str(self.fields[name].label)] = format_rate(values[name])
        if isinstance(values.get("disk_limit"), float):
            words[str(self.fields["disk_limit"].label)] = f"{100 * values['disk_limit']:g} %"
        return words

    def _rate(self, name: str) -> int:
        try:
            return bytes_per_second(self.cleaned_data[name])
        except BadRate as error:
            raise form_error(error.message) from error

    def _whole(self, name: str, example: str) -> int:
        typed = self.cleaned_data[name].strip()
        if not _WHOLE.fullmatch(typed) or int(typed) < 1:
            raise form_error(ReassignmentErrorCode.NO_WHOLE_NUMBER, example=example)
        if int(typed) > MOST_PARALLEL:
            raise form_error(ReassignmentErrorCode.TOO_MANY_AT_ONCE, typed=int(typed), most=MOST_PARALLEL)
        return int(typed)

    def _moment(self, name: str) -> datetime | None:
        """In UTC, and of a year that is written with four digits."""
        moment: datetime | None = self.cleaned_data[name]
        with suppress(OverflowError):  # beyond the first or the last day there is
            if moment is None or moment.astimezone(UTC).year >= 1000:
                return moment
        raise form_error(ReassignmentErrorCode.TIME_UNREADABLE)

    def _clean_window(self, start: datetime | None, end: datetime | None) -> None:
        if end is None:
            return
        if end <= self.now:
            self.add_error(
                "not_after",
                form_error(ReassignmentErrorCode.TIME_PASSED, now=f"{self.now.astimezone(UTC):%d %b %H:%M}"),
            )
        elif start is not None and end <= start:
            self.add_error("not_after", form_error(ChangeErrorCode.WINDOW_TURNED_ROUND))

    def _ask_twice(self, low: int, rate: int) -> None:
        """Slow is sometimes meant and mostly a slip: it needs a second yes."""
        if rate < SLOW_BELOW or low < SLOW_BELOW:
            slow = rate if rate < SLOW_BELOW else low
            asks = coded(ReassignmentErrorCode.VERY_SLOW, rate=format_rate(slow), hours=_hours(1e9 / slow))
        elif self.inbound is not None and low < self.inbound:
            inbound = f"{self.inbound / 1e6:,.1f}"
            asks = coded(ReassignmentErrorCode.NEVER_FINISHES, rate=format_rate(low), inbound=inbound)
        else:
            return
        self.asks_twice = message_cause(asks.code, **asks.params)
        if not self.cleaned_data.get("confirmed"):
            self.add_error("confirmed", form_error(asks))


class WhyForm(WizardForm):
    title = forms.CharField(label="Title", required=False)
    why = forms.CharField(label="Reason", required=False)

    def clean_title(self) -> str:
        title = " ".join(self.cleaned_data["title"].split())
        if not title:
            raise form_error(ReassignmentErrorCode.TITLE_MISSING)
        if len(title) > LONGEST_TITLE:
            raise form_error(ReassignmentErrorCode.TITLE_DOES_NOT_FIT, length=len(title), most=LONGEST_TITLE)
        return title

    def clean_why(self) -> str:
        why: str = self.cleaned_data["why"].strip()
        if len(why) > LONGEST_WHY:
            raise form_error(ReassignmentErrorCode.REASON_DOES_NOT_FIT, length=len(why), most=LONGEST_WHY)
        return why


def broker_ids(typed: str) -> tuple[int, ...]:
    """Return the ids of "3,7" as (3, 7), sorted, each once. Raises ValidationError."""
    parts = [part.strip() for part in typed.split(",") if part.strip()]
    bad = [part for part in parts if not _ID.fullmatch(part)]
    if bad:
        shown = bad[0] if len(bad[0]) <= 30 else f"{bad[0][:29]}…"
        raise form_error(ReassignmentErrorCode.NO_BROKER_ID, typed=shown)
    return tuple(sorted({int(part) for part in parts}))


def _stamp(moment: datetime | None) -> str:
    return moment.astimezone(UTC).strftime(_STAMP) if moment else ""


def moment_of(stamp: str) -> datetime | None:
    """Return the UTC instant of a stamp as ``RunOptions`` keeps it; None for an empty stamp (open)."""
    return datetime.strptime(stamp, _STAMP).replace(tzinfo=UTC) if stamp else None


def _hours(seconds: float) -> str:
    return f"{seconds / 3600:,.1f} h" if seconds < 172_800 else f"{seconds / 86_400:,.0f} days"


def in_words(value: Any) -> str:
    """Return a field's value in words, to set two versions side by side."""
    match value:
        case None | "" | () | []:
            return "none"
        case bool():
            return "yes" if value else "no"
        case datetime():
            return f"{value.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
        case tuple() | list():
            return join_items([str(one) for one in value])
        case _:
            return str(value)


OUT, IN = "out", "in"
"""Roles of a broker in a replacement: replaced, or taking over."""
_SHORT_WHOLE = re.compile(r"\d{1,4}")
_PERCENT = re.compile(r"\d{1,3}(\.\d{1,2})?")
_FIELDS: Mapping[str, tuple[str, ...]] = {
    ADD: ("brokers", "rebalance", "ignore_racks"),
    DRAIN: ("brokers", "rebalance", "ignore_racks", "accept_fewer_racks"),
    REPLACE: ("brokers", "replacements", "rebalance", "ignore_racks", "accept_fewer_racks"),
    REPAIR_RACKS: (),
    SET_RF: ("factor", "internal", "rebalance", "ignore_racks"),
    BALANCE: ("disks", "eps", "leaders", "ignore_racks"),
    LEADERS: (),
}
_OPTIONS = {EXPLICIT: ("change_rf", "accept_fewer_racks"), FINISH: ("accept_fewer_racks",)}
_OF_ALL = ("topics", "pattern", "excluded", "version")
_LABELS = {ADD: "Brokers to add", DRAIN: "Brokers to drain", REPLACE: "Brokers to replace"}
_MISSING: Mapping[str, StrEnum] = {
    ADD: PlanErrorCode.NO_BROKERS_TO_ADD,
    DRAIN: ReassignmentErrorCode.NO_BROKER_CHOSEN,
    REPLACE: PlanErrorCode.NO_BROKERS_TO_REPLACE,
}


def option_fields(mode: str) -> tuple[str, ...]:
    """Return the fields of the first step in this mode, apart from topics and what is brought."""
    return _OPTIONS.get(mode) or _FIELDS.get(mode, ())


def ticked_topics(data: Mapping[str, Any]) -> frozenset[str]:
    """Return the topics that are ticked in the list, on the page that was sent and on others."""
    here = data.getlist("pick") if isinstance(data, QueryDict) else data.get("pick", ())
    return frozenset((*here, *names_in(data.get("held", ""))))


class PlannedForm(WizardForm):
    """Form for a mode in which the planner chooses where replicas go, with the fields of that mode only.

    Topics are ticked in a list (``picker``), of which one page is shown, beside those that are typed. ``turns_list``:
    only the list is turned over, and nothing is judged yet.
    """

    brokers = forms.MultipleChoiceField(label="Brokers", required=False)
    replacements = forms.CharField(label="Replacement brokers", required=False)
    factor = forms.CharField(label="Replication factor", required=False)
    disks = forms.BooleanField(label="Balance disk usage", required=False)
    eps = forms.CharField(label="Disk usage tolerance", required=False)
    leaders = forms.BooleanField(label="Balance leaders", required=False)
    topics = forms.CharField(label="Topics by name", required=False)
    internal = forms.BooleanField(label="Include internal topics", required=False)
    pattern = forms.CharField(label="Topics by regular expression", required=False)
    excluded = forms.CharField(label="Excluded topics", required=False)
    rebalance = forms.BooleanField(label="Also rebalance replica counts", required=False)
    ignore_racks = forms.BooleanField(label="Plan without rack awareness", required=False)
    accept_fewer_racks = forms.BooleanField(label="Accept fewer racks", required=False)

    def __init__(
        self,
        data: Mapping[str, Any] | None,
        *,
        cluster: Cluster,
        choices: Sequence[BrokerChoice],
        before: PlanInput,
        version: int,
    ) -> None:
        values = {name: _format_field_value(value) for name, value in self.stored(before).items()}
        # What is chosen already is ticked in the list; only names that are not in it have to be in the field.
        values["topics"] = lambda: "\n".join(self.picker.unknown)
        super().__init__(data, initial={**values, "version": version})
        self.cluster, self.choices, self.before, self.mode = cluster, choices, before, before.mode
        self.turns_list = data is not None and "topics_act" in data
        for name in [n for n in self.fields if n not in (*_FIELDS[self.mode], *_OF_ALL)]:
            del self.fields[name]
        if self.mode in OF_BROKERS:
            self.fields["brokers"].label = _LABELS[self.mode]
        self.rackless = without_rack(choices)
        self.racks = len({choice.rack for choice in choices if choice.rack is not None})
        self.takers = sum(choice.takes for choice in choices)

    @staticmethod
    def stored(plan_input: PlanInput) -> dict[str, Any]:
        """Return the input as ``cleaned_data`` has it."""
        return {
            **{name: getattr(plan_input, name) for name in PlannedForm.base_fields if hasattr(plan_input, name)},
            "disks": plan_input.eps is not None,
            "eps": EPS if plan_input.eps is None else plan_input.eps,
        }

    @property
    def rows(self) -> list[BrokerChoice]:
        """Rows of the brokers, as on the page."""
        chosen = {str(one) for one in self["brokers"].value() or ()}
        return [replace(one, checked=str(one.id) in chosen, role=self._role(one.id)) for one in self.choices]

    @property
    def includes_internal(self) -> bool:
        """Return whether internal topics count among those that are not named; a factor is changed only on request."""
        return self.mode != SET_RF or bool(self["internal"].value())

    @cached_property
    def topic_sizes(self) -> Mapping[str, TopicSize]:
        return read_topics(self.cluster)

    @cached_property
    def picker(self) -> TopicPicker:
        """Return the list of topics after what was done to it."""
        if not self.is_bound:
            return build_picker(self.topic_sizes, self.before.topics, internal=self.includes_internal)
        return build_picker(
            self.topic_sizes,
            ticked_topics(self.data),
            act=self.data.get("topics_act", ""),
            search=self.data.get("topic_q", "").strip(),
            only_ticked="topic_ticked" in self.data,
            page=self.data.get("topic_page", "1"),
            internal=self.includes_internal,
        )

    @cached_property
    def counted(self) -> CountedTopics | None:
        """Return how much is chosen; None where it cannot be told, or takes a process of its own to find out."""
        pattern, excluded = (str(self[name].value() or "").strip() for name in ("pattern", "excluded"))
        if pattern or excluded:
            return None
        names = sorted({*self.picker.ticked, *names_in(str(self["topics"].value() or ""))})
        try:
            return count_choice(self.cluster, names, "", "", internal=self.includes_internal, known=self.topic_sizes)
        except BadChoice:
            return None

    def full_clean(self) -> None:
        if self.turns_list:
            self._errors, self.cleaned_data = ErrorDict(), {}
        else:
            super().full_clean()

    def _role(self, broker: int) -> str:
        if self.is_bound:
            return str(self.data.get(f"role-{broker}", ""))
        return OUT if broker in self.before.brokers else IN if broker in self.before.replacements else ""

    def _clean_fields(self) -> None:
        if "brokers" in self.fields:
            # What was sent is judged below: a broker that is not there gets a sentence of its own.
            sent = self.data.getlist("brokers") if hasattr(self.data, "getlist") else list(self.data.get("brokers", ()))
            self.fields["brokers"].choices = [(one, one) for one in sent]  # type: ignore[attr-defined]
        super()._clean_fields()  # type: ignore[misc]

    def clean_brokers(self) -> tuple[int, ...]:
        ids = self._with_role(OUT) if self.mode == REPLACE else broker_ids(",".join(self.cleaned_data["brokers"]))
        if not ids:
            raise form_error(_MISSING[self.mode])
        known = {choice.id: choice for choice in self.choices}
        missing = [id_ for id_ in ids if id_ not in known]
        if missing:
            code, there = ReassignmentErrorCode.BROKER_NOT_THERE, tuple(sorted(known))
            raise form_error(code, cluster=self.cluster.name, brokers=tuple(missing), known=there)
        if self.mode == ADD:
            _refuse_unfit([known[id_] for id_ in ids])
        elif self.mode == DRAIN and not any(choice.takes and choice.id not in ids for choice in self.choices):
            raise form_error(ReassignmentErrorCode.NO_BROKER_LEFT, cluster=self.cluster.name)
        return ids

    def clean_replacements(self) -> tuple[int, ...]:
        ids = self._with_role(IN)
        if not ids and self.cleaned_data.get("brokers"):
            raise form_error(PlanErrorCode.NO_REPLACEMENTS, brokers=self.cleaned_data["brokers"])
        _refuse_unfit([choice for choice in self.choices if choice.id in ids])
        return ids

    def clean_factor(self) -> int:
        typed = self.cleaned_data["factor"].strip()
        if not typed:
            raise form_error(PlanErrorCode.NO_FACTOR)
        if not _SHORT_WHOLE.fullmatch(typed):
            raise form_error(ReassignmentErrorCode.NO_WHOLE_NUMBER, example="3")
        factor = int(typed)
        if factor < 1:
            raise form_error(PlanErrorCode.FACTOR_TOO_LOW, factor=factor)
        if factor > self.takers > 0:
            raise form_error(PlanErrorCode.FACTOR_TOO_HIGH, factor=factor, brokers=self.takers)
        for broken in find_broken(load_rules(self.cluster), RuledItem("", factor=factor)):
            raise form_error(reason_message(broken))
        return factor

    def clean_eps(self) -> float:
        typed = self.cleaned_data["eps"].strip().removesuffix("%").strip()
        if not self.cleaned_data.get("disks") and not _PERCENT.fullmatch(typed):
            return EPS  # it says nothing while disks are left alone
        if not _PERCENT.fullmatch(typed) or not 1 <= float(typed) <= 100:
            raise form_error(ReassignmentErrorCode.EVENNESS_UNREADABLE)
        return round(float(typed) / 100, 4)

    def clean_topics(self) -> tuple[str, ...]:
        return tuple(sorted({*ticked_topics(self.data), *names_in(self.cleaned_data["topics"])}))

    def clean_pattern(self) -> str:
        return str(self.cleaned_data["pattern"].strip())

    def clean_excluded(self) -> str:
        return str(self.cleaned_data["excluded"].strip())

    def clean(self) -> None:
        values = self.cleaned_data
        if self.rackless and self.mode != LEADERS and not values.get("ignore_racks"):
            brokers = tuple(self.rackless)
            if self.mode == REPAIR_RACKS:
                self.add_error(None, form_error(ReassignmentErrorCode.RACKS_NOT_KNOWN, brokers=brokers))
            else:
                self.add_error("ignore_racks", form_error(ReassignmentErrorCode.RACK_MISSING, brokers=brokers))
        chosen = values.get("topics", ()), values.get("pattern", ""), values.get("excluded", "")
        if any(chosen):
            try:
                count_choice(self.cluster, *chosen, internal=self.includes_internal)
            except BadChoice as bad:
                self.add_error(bad.field, form_error(bad.message))

    def build_input(self, before: PlanInput) -> PlanInput:
        values = dict(self.cleaned_data)
        del values["version"]
        if self.mode == BALANCE:
            values["eps"] = values["eps"] if values.pop("disks") else None
        return replace(before, **values)

    def in_words(self, values: Mapping[str, Any]) -> dict[str, str]:
        words = super().in_words(values)
        if self.mode == BALANCE:
            eps = values.get("eps")
            words["Disk usage tolerance"] = f"{100 * eps:g} %" if isinstance(eps, float) else in_words(eps)
        return words

    def _with_role(self, role: str) -> tuple[int, ...]:
        """Brokers that were given it, by id. Raises ValidationError."""
        sent = [name.removeprefix("role-") for name in self.data if name.startswith("role-")]
        return broker_ids(",".join(one for one in sent if self.data.get(f"role-{one}") == role))


CHECKED_BYTES = 5_000_000
"""Up to so many bytes are checked while the form is saved; the rows of a larger file are checked when it is planned."""
SHOWN_PROBLEMS = 10


def find_problems(cluster: Cluster, plan_input: PlanInput, content: bytes) -> Sequence[InputProblem]:
    """Return what planning would refuse in Kafka's JSON; while facts are too old, only what the JSON itself shows.

    Disks are judged when it is planned: their limit is chosen in the next step.
    """
    parsed = read_reassignment(content)
    try:
        refuse_old_facts(cluster, timezone.now())
    except ChangeRefused:
        return parsed.problems
    topology = load_topology(cluster, {row.topic for row in parsed.rows}, sizes=False).topology
    if plan_input.mode == FINISH:
        return plan_unfinished(parsed, topology).problems
    return plan_explicitly(parsed, topology, change_rf=plan_input.change_rf).problems


class ExplicitForm(WizardForm):
    """Kafka's JSON, pasted or as a file; with neither, what was brought before stays.

    An earlier plan that is finished may change factors as it was to change them then. What planning would refuse in it
    is an error of its field.
    """

    file = forms.FileField(label="File", required=False, allow_empty_file=True)
    text = forms.CharField(label="Pasted JSON", required=False, strip=False)
    change_rf = forms.BooleanField(label="Allow replication factor changes", required=False)
    accept_fewer_racks = forms.BooleanField(label="Accept fewer racks", required=False)

    def __init__(self, *args: Any, cluster: Cluster, before: PlanInput, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.cluster, self.before = cluster, before
        self.brought: BroughtFile | None = None
        if before.mode == FINISH:
            del self.fields["change_rf"]

    def clean(self) -> None:
        file, text = self.cleaned_data.get("file"), self.cleaned_data.get("text", "")
        if file and text.strip() and self.data.get("text") != self.initial.get("text"):
            self.add_error("file", form_error(ReassignmentErrorCode.FILE_AND_TEXT))
            return
        try:
            if file:
                self.brought = from_file(file)
            elif text.strip():
                self.brought = from_text(text)
        except TooLarge as error:
            self.add_error("file" if file else "text", form_error(error.message))
            return
        if self.brought is not None and self.brought.size == 0:
            self.add_error("file", form_error(ReassignmentErrorCode.FILE_EMPTY))
        elif self.brought is not None and self.brought.size <= CHECKED_BYTES:
            problems = find_problems(self.cluster, self.build_input(self.before), self.brought.content)
            for problem in problems[:SHOWN_PROBLEMS]:
                message = ValidationError(str(problem), code=problem.message.shown_code)
                self.add_error("file" if file else "text", message)
            if len(problems) > SHOWN_PROBLEMS:
                more = form_error(ReassignmentErrorCode.MORE_PROBLEMS, more=len(problems) - SHOWN_PROBLEMS)
                self.add_error("file" if file else "text", more)
        elif self.brought is None and not self.before.upload:
            self.add_error("text", form_error(ReassignmentErrorCode.NO_FILE))

    def in_words(self, values: Mapping[str, Any]) -> dict[str, str]:
        if self.is_bound and values is self.cleaned_data:
            brought = self.brought
            name, sha = (brought.name, brought.sha256) if brought else (self.before.name, self.before.upload)
        else:
            name, sha = values.get("name", ""), values.get("upload", "")
        own = {"Assignment": f"{name or 'pasted'}, sha256 {sha[:12]}" if sha else "none"}
        for name in ("change_rf", "accept_fewer_racks"):
            if name in self.fields:
                own[str(self.fields[name].label)] = in_words(values.get(name))
        return own

    def build_input(self, before: PlanInput) -> PlanInput:
        plan_input = replace(
            before,
            change_rf=self.cleaned_data.get("change_rf", False),
            accept_fewer_racks=self.cleaned_data["accept_fewer_racks"],
        )
        return replace(plan_input, upload=self.brought.sha256, name=self.brought.name) if self.brought else plan_input


def _refuse_unfit(choices: Sequence[BrokerChoice]) -> None:
    """Raise ValidationError unless all brokers that are to be given replicas are up."""
    for choice in choices:
        if not choice.takes:
            why = UnfitReason.AWAY if choice.gone else UnfitReason.FENCED
            raise form_error(PlanErrorCode.BROKER_UNFIT, broker=choice.id, why=why, entries=1)


def _format_field_value(value: object) -> object:
    """Return the value as a field shows it."""
    match value:
        case bool():
            return value
        case float():
            return f"{100 * value:g}"
        case ():
            return ""
        case tuple():
            return [str(one) for one in value] if all(isinstance(one, int) for one in value) else "\n".join(value)
        case _:
            return "" if value is None else value
