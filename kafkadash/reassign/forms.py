"""Forms of the wizard that proposes a reassignment. What is wrong is said at its field; what was typed stays."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.forms.boundfield import BoundField

from kafkadash.accounts.errors import form_error, lazy_text
from kafkadash.changes.errors import ChangeErrorCode
from kafkadash.clusters.models import Cluster
from kafkadash.domain.messages import coded, message_cause, message_text
from kafkadash.domain.plan import Options
from kafkadash.domain.refusals import asked as refused
from kafkadash.domain.wording import listed
from kafkadash.reassign.asked import LONGEST_TITLE, MODES, Asked
from kafkadash.reassign.brokers import BrokerChoice, BrokerRow
from kafkadash.reassign.errors import ReassignmentErrorCode
from kafkadash.reassign.rates import SLOW_BELOW, BadRate, both, bytes_per_second, megabytes

LONGEST_WHY = 4000
MOST_PARALLEL = 1000
_ID = re.compile(r"\d{1,9}")
_WHOLE = re.compile(r"\d{1,6}")
_STAMP = "%Y-%m-%dT%H:%M:%SZ"


class WizardForm(forms.Form):
    """``version`` is that of the draft that was on the page."""

    use_required_attribute = False
    version = forms.IntegerField(
        widget=forms.HiddenInput,
        error_messages={
            "required": lazy_text(ReassignmentErrorCode.PAGE_INCOMPLETE),
            "invalid": lazy_text(ReassignmentErrorCode.PAGE_INCOMPLETE),
        },
    )

    def wrong(self) -> Iterator[tuple[BoundField | None, str]]:
        """Every sentence with its field, for the summary at the top."""
        for sentence in self.non_field_errors():
            yield None, str(sentence)
        for field in self:
            for error in field.errors:
                yield (None if field.is_hidden else field), str(error)

    def in_words(self, values: Mapping[str, Any]) -> dict[str, str]:
        """Label → what the values say, to set two versions side by side."""
        return {str(f.label): in_words(values.get(name)) for name, f in self.fields.items() if name != "version"}

    def differences(self, stored: Mapping[str, Any]) -> list[tuple[str, str, str]]:
        """(label, typed here, stored now) where they differ."""
        mine, theirs = self.in_words(self.cleaned_data), self.in_words(stored)
        return [(label, mine[label], theirs[label]) for label in mine if mine[label] != theirs[label]]


class NewForm(forms.Form):
    """Where and how; ``brokers`` comes along from pages that link here."""

    use_required_attribute = False
    cluster = forms.ChoiceField(label="Cluster", required=False)
    mode = forms.ChoiceField(
        label="What to do",
        required=False,
        choices=[(mode, mode) for mode in MODES],
    )
    brokers = forms.CharField(label="Brokers", required=False, widget=forms.HiddenInput)

    wrong = WizardForm.wrong

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

    ``choices``: brokers, where it is asked which of them may be given replicas.
    """

    throttle = forms.CharField(label="Throttle", required=False)
    throttle_min = forms.CharField(label="Lowest", required=False)
    throttle_max = forms.CharField(label="Highest", required=False)
    per_broker = forms.CharField(label="Moves at once per broker", required=False)
    per_cluster = forms.CharField(label="Moves at once in the cluster", required=False)
    not_before = forms.DateTimeField(label="Not before", required=False)
    not_after = forms.DateTimeField(label="Not after", required=False)
    disk_limit = forms.CharField(label="Disk limit", required=False)
    targets = forms.MultipleChoiceField(label="Only these brokers may be given replicas", required=False)
    most_replicas = forms.CharField(label="Most replicas on a broker", required=False)
    elect_leaders = forms.BooleanField(label="Elect preferred leaders afterwards", required=False)
    confirmed = forms.BooleanField(label="Yes, that slow", required=False)

    def __init__(
        self,
        *args: Any,
        now: datetime,
        inbound: float | None = None,
        asked: Asked | None = None,
        choices: Sequence[BrokerChoice] = (),
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        leaving = set(asked.brokers) if asked is not None and asked.empties else set()
        self.now, self.inbound, self.choices = now, inbound, [one for one in choices if one.id not in leaving]
        if asked is None or not asked.copies:
            del self.fields["most_replicas"]
        if asked is None or not asked.may_choose_targets:
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

    def clean_throttle_min(self) -> int:
        return self._rate("throttle_min")

    def clean_throttle_max(self) -> int:
        return self._rate("throttle_max")

    def clean_per_broker(self) -> int:
        return self._whole("per_broker", "5")

    def clean_per_cluster(self) -> int:
        return self._whole("per_cluster", "50")

    def clean_not_before(self) -> datetime | None:
        return self._moment("not_before")

    def clean_not_after(self) -> datetime | None:
        return self._moment("not_after")

    @property
    def target_rows(self) -> list[BrokerRow]:
        """Those that are up, as they are on the page; none chosen means all that can."""
        chosen = {str(one) for one in self["targets"].value() or ()}
        return [BrokerRow(one, str(one.id) in chosen) for one in self.choices if one.takes or str(one.id) in chosen]

    def clean_targets(self) -> tuple[int, ...] | None:
        ids = tuple(sorted(int(one) for one in self.cleaned_data["targets"]))
        if ids and not any(choice.takes and choice.id in ids for choice in self.choices):
            raise ValidationError(refused.NO_TARGET())
        return ids or None

    def clean_most_replicas(self) -> int | None:
        typed = self.cleaned_data["most_replicas"].strip()
        if typed and (not _WHOLE.fullmatch(typed) or int(typed) < 1):
            raise form_error(ReassignmentErrorCode.NO_WHOLE_NUMBER, example="4000")
        return int(typed) if typed else None

    def asked(self, before: Asked) -> Asked:
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
        low, rate, high = values.get("throttle_min"), values.get("throttle"), values.get("throttle_max")
        if low is not None and high is not None and low > high:
            self.add_error(
                "throttle_min",
                message_text(ReassignmentErrorCode.LOWEST_ABOVE_HIGHEST, low=megabytes(low), high=megabytes(high)),
            )
        elif rate is not None and low is not None and rate < low:
            self.add_error("throttle", message_text(ReassignmentErrorCode.STARTS_BELOW, low=megabytes(low)))
        elif rate is not None and high is not None and rate > high:
            self.add_error("throttle", message_text(ReassignmentErrorCode.STARTS_ABOVE, high=megabytes(high)))
        k, n = values.get("per_broker"), values.get("per_cluster")
        if k is not None and n is not None and k > n:
            self.add_error("per_broker", message_text(ReassignmentErrorCode.MORE_THAN_THE_CLUSTER, most=n))
        self._clean_window(values.get("not_before"), values.get("not_after"))
        if low is not None and rate is not None and not self.errors:
            self._ask_twice(low, rate)

    def options(self, asked: Asked) -> Options:
        values = self.cleaned_data
        return Options(
            throttle=values["throttle"],
            throttle_min=values["throttle_min"],
            throttle_max=values["throttle_max"],
            per_broker=values["per_broker"],
            per_cluster=values["per_cluster"],
            not_before=_stamp(values["not_before"]),
            not_after=_stamp(values["not_after"]),
            elect_leaders=values["elect_leaders"],
            change_rf=asked.resizes,
            may_lose_racks=asked.may_lose_racks,
        )

    def in_words(self, values: Mapping[str, Any]) -> dict[str, str]:
        words = super().in_words({**values, "confirmed": None})
        words.pop(str(self.fields["confirmed"].label))
        for name in ("throttle", "throttle_min", "throttle_max"):
            if isinstance(values.get(name), int):
                words[str(self.fields[name].label)] = both(values[name])
        if isinstance(values.get("disk_limit"), float):
            words[str(self.fields["disk_limit"].label)] = f"{100 * values['disk_limit']:g} %"
        return words

    def _rate(self, name: str) -> int:
        try:
            return bytes_per_second(self.cleaned_data[name])
        except BadRate as error:
            raise ValidationError(str(error)) from error

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
                message_text(ReassignmentErrorCode.TIME_PASSED, now=f"{self.now.astimezone(UTC):%d %b %H:%M}"),
            )
        elif start is not None and end <= start:
            self.add_error("not_after", message_text(ChangeErrorCode.WINDOW_TURNED_ROUND))

    def _ask_twice(self, low: int, rate: int) -> None:
        """Slow is sometimes meant and mostly a slip: it needs a second yes."""
        if rate < SLOW_BELOW or low < SLOW_BELOW:
            slow = rate if rate < SLOW_BELOW else low
            asks = coded(ReassignmentErrorCode.VERY_SLOW, rate=both(slow), hours=_hours(1e9 / slow))
        elif self.inbound is not None and low < self.inbound:
            inbound = f"{self.inbound / 1e6:,.1f}"
            asks = coded(ReassignmentErrorCode.NEVER_FINISHES, rate=both(low), inbound=inbound)
        else:
            return
        self.asks_twice = message_cause(asks.code, **asks.params)
        if not self.cleaned_data.get("confirmed"):
            self.add_error("confirmed", ValidationError(str(asks), code=asks.code.value))


class WhyForm(WizardForm):
    title = forms.CharField(label="Title", required=False)
    why = forms.CharField(label="Why", required=False)

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
    """ "3,7" → (3, 7), sorted, each once. Raises ValidationError."""
    parts = [part.strip() for part in typed.split(",") if part.strip()]
    bad = [part for part in parts if not _ID.fullmatch(part)]
    if bad:
        shown = bad[0] if len(bad[0]) <= 30 else f"{bad[0][:29]}…"
        raise form_error(ReassignmentErrorCode.NO_BROKER_ID, typed=shown)
    return tuple(sorted({int(part) for part in parts}))


def _stamp(moment: datetime | None) -> str:
    return moment.astimezone(UTC).strftime(_STAMP) if moment else ""


def moment_of(stamp: str) -> datetime | None:
    """Of a stamp as ``Options`` keeps it; None where it is open."""
    return datetime.strptime(stamp, _STAMP).replace(tzinfo=UTC) if stamp else None


def _hours(seconds: float) -> str:
    return f"{seconds / 3600:,.1f} h" if seconds < 172_800 else f"{seconds / 86_400:,.0f} days"


def in_words(value: Any) -> str:
    """What a field says, to set two versions side by side."""
    match value:
        case None | "" | () | []:
            return "none"
        case bool():
            return "yes" if value else "no"
        case datetime():
            return f"{value.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
        case tuple() | list():
            return listed([str(one) for one in value])
        case _:
            return str(value)
