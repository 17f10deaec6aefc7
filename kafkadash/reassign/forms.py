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

from kafkadash.clusters.models import Cluster
from kafkadash.domain.plan import Options
from kafkadash.domain.refusals import drafts
from kafkadash.domain.refusals import forms as said
from kafkadash.domain.wording import listed
from kafkadash.reassign.asked import DRAIN, EXPLICIT, LONGEST_TITLE, Asked, broker_names
from kafkadash.reassign.brokers import BrokerChoice, without_rack
from kafkadash.reassign.rates import SLOW_BELOW, BadRate, both, bytes_per_second, megabytes
from kafkadash.reassign.uploads import Brought, TooLarge, from_file, from_text

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
        error_messages={"required": said.PAGE_INCOMPLETE(), "invalid": said.PAGE_INCOMPLETE()},
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
        return {str(f.label): _in_words(values.get(name)) for name, f in self.fields.items() if name != "version"}

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
        choices=[
            (DRAIN, "Drain brokers"),
            (EXPLICIT, "Explicit assignment"),
        ],
    )
    brokers = forms.CharField(label="Brokers", required=False, widget=forms.HiddenInput)

    wrong = WizardForm.wrong

    def __init__(self, *args: Any, clusters: Sequence[Cluster], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.clusters = {cluster.slug: cluster for cluster in clusters}
        self.fields["cluster"].choices = [(c.slug, c.name) for c in clusters]  # type: ignore[attr-defined]
        self.fields["cluster"].error_messages["invalid_choice"] = said.CLUSTER_NOT_ALLOWED()
        self.fields["mode"].error_messages["invalid_choice"] = said.MODE_UNKNOWN()

    def clean_cluster(self) -> Cluster:
        cluster = self.clusters.get(self.cleaned_data["cluster"])
        if cluster is None:
            raise ValidationError(said.CLUSTER_MISSING())
        if cluster.read_only:
            raise ValidationError(said.CLUSTER_READ_ONLY(cluster=cluster.name))
        return cluster

    def clean_mode(self) -> str:
        mode: str = self.cleaned_data["mode"]
        if not mode:
            raise ValidationError(said.MODE_MISSING())
        return mode

    def clean_brokers(self) -> tuple[int, ...]:
        return broker_ids(self.cleaned_data["brokers"])


class DrainForm(WizardForm):
    """Which brokers lose all their replicas."""

    brokers = forms.MultipleChoiceField(label="Brokers to drain", required=False)
    ignore_racks = forms.BooleanField(label="Plan without regard to racks", required=False)
    accept_fewer_racks = forms.BooleanField(label="Accept fewer racks", required=False)

    def __init__(self, *args: Any, cluster: Cluster, choices: Sequence[BrokerChoice], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.cluster, self.choices = cluster, choices
        self.rackless = without_rack(choices)
        self.racks = len({choice.rack for choice in choices if choice.rack is not None})

    @property
    def chosen(self) -> set[str]:
        """As they are on the page, ids as text."""
        value = self["brokers"].value() or []
        return {str(one) for one in value}

    def _clean_fields(self) -> None:
        # What was sent is judged below: a broker that is not there gets a sentence of its own.
        sent = self.data.getlist("brokers") if hasattr(self.data, "getlist") else list(self.data.get("brokers", ()))
        self.fields["brokers"].choices = [(one, one) for one in sent]  # type: ignore[attr-defined]
        super()._clean_fields()  # type: ignore[misc]

    def clean_brokers(self) -> tuple[int, ...]:
        ids = broker_ids(",".join(self.cleaned_data["brokers"]))
        known = {choice.id for choice in self.choices}
        missing = [id_ for id_ in ids if id_ not in known]
        if not ids:
            raise ValidationError(said.NO_BROKER_CHOSEN())
        if missing:
            has = f"It has {broker_names(sorted(known))}." if known else "No broker of it was seen yet."
            names = broker_names(missing)
            raise ValidationError(said.BROKER_NOT_THERE(cluster=self.cluster.name, brokers=names, has=has))
        if not any(choice.takes and choice.id not in ids for choice in self.choices):
            raise ValidationError(said.NO_BROKER_LEFT(cluster=self.cluster.name))
        return ids

    def clean(self) -> None:
        if self.rackless and not self.cleaned_data.get("ignore_racks"):
            names = "names" if len(self.rackless) == 1 else "name"
            brokers = f"{broker_names(self.rackless).capitalize()} {names}"
            self.add_error("ignore_racks", said.RACK_MISSING(brokers=brokers))

    def asked(self, before: Asked) -> Asked:
        return replace(
            before,
            brokers=self.cleaned_data["brokers"],
            ignore_racks=self.cleaned_data["ignore_racks"],
            accept_fewer_racks=self.cleaned_data["accept_fewer_racks"],
        )


class ExplicitForm(WizardForm):
    """Kafka's JSON, pasted or as a file; with neither, what was brought before stays."""

    file = forms.FileField(label="File", required=False, allow_empty_file=True)
    text = forms.CharField(label="Kafka’s JSON", required=False, strip=False)
    change_rf = forms.BooleanField(label="Let the replication factor change", required=False)

    def __init__(self, *args: Any, before: Asked, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.before = before
        self.brought: Brought | None = None

    def clean(self) -> None:
        file, text = self.cleaned_data.get("file"), self.cleaned_data.get("text", "")
        if file and text.strip() and self.data.get("text") != self.initial.get("text"):
            self.add_error("file", said.FILE_AND_TEXT())
            return
        try:
            if file:
                self.brought = from_file(file)
            elif text.strip():
                self.brought = from_text(text)
        except TooLarge as error:
            self.add_error("file" if file else "text", str(error))
            return
        if self.brought is not None and self.brought.size == 0:
            self.add_error("file", said.FILE_EMPTY())
        elif self.brought is None and not self.before.upload:
            self.add_error("text", said.NO_FILE())

    def in_words(self, values: Mapping[str, Any]) -> dict[str, str]:
        if self.is_bound and values is self.cleaned_data:
            brought = self.brought
            name, sha = (brought.name, brought.sha256) if brought else (self.before.name, self.before.upload)
        else:
            name, sha = values.get("name", ""), values.get("upload", "")
        own = {"Assignment": f"{name or 'pasted'}, sha256 {sha[:12]}" if sha else "none"}
        return own | {str(self.fields["change_rf"].label): _in_words(values.get("change_rf"))}

    def asked(self, before: Asked) -> Asked:
        asked = replace(before, change_rf=self.cleaned_data["change_rf"])
        return replace(asked, upload=self.brought.sha256, name=self.brought.name) if self.brought else asked


class LimitsForm(WizardForm):
    """Rates in MB/s, the window in UTC; ``bound`` is what producers write to what moves, None while not known."""

    throttle = forms.CharField(label="Throttle", required=False)
    throttle_min = forms.CharField(label="Lowest", required=False)
    throttle_max = forms.CharField(label="Highest", required=False)
    per_broker = forms.CharField(label="Moves at once per broker", required=False)
    per_cluster = forms.CharField(label="Moves at once in the cluster", required=False)
    not_before = forms.DateTimeField(label="Not before", required=False)
    not_after = forms.DateTimeField(label="Not after", required=False)
    disk_limit = forms.CharField(label="Disk limit", required=False)
    elect_leaders = forms.BooleanField(label="Elect preferred leaders afterwards", required=False)
    confirmed = forms.BooleanField(label="Yes, that slow", required=False)

    def __init__(self, *args: Any, now: datetime, inbound: float | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.now, self.inbound = now, inbound
        self.asks_twice = ""
        for name in ("not_before", "not_after"):
            self.fields[name].error_messages["invalid"] = said.TIME_UNREADABLE()

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

    def clean_disk_limit(self) -> float:
        typed = self.cleaned_data["disk_limit"].strip().removesuffix("%").strip()
        if not re.fullmatch(r"\d{1,3}(\.\d{1,2})?", typed):
            raise ValidationError(said.PERCENT_UNREADABLE())
        percent = float(typed)
        if not 1 <= percent <= 100:
            raise ValidationError(said.PERCENT_OUTSIDE())
        return round(percent / 100, 4)

    def clean(self) -> None:
        values = self.cleaned_data
        low, rate, high = values.get("throttle_min"), values.get("throttle"), values.get("throttle_max")
        if low is not None and high is not None and low > high:
            self.add_error("throttle_min", said.LOWEST_ABOVE_HIGHEST(low=megabytes(low), high=megabytes(high)))
        elif rate is not None and low is not None and rate < low:
            self.add_error("throttle", said.STARTS_BELOW(low=megabytes(low)))
        elif rate is not None and high is not None and rate > high:
            self.add_error("throttle", said.STARTS_ABOVE(high=megabytes(high)))
        k, n = values.get("per_broker"), values.get("per_cluster")
        if k is not None and n is not None and k > n:
            self.add_error("per_broker", said.MORE_THAN_THE_CLUSTER(most=n))
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
            raise ValidationError(said.NO_WHOLE_NUMBER(example=example))
        if int(typed) > MOST_PARALLEL:
            raise ValidationError(said.TOO_MANY_AT_ONCE(typed=int(typed), most=MOST_PARALLEL))
        return int(typed)

    def _moment(self, name: str) -> datetime | None:
        """In UTC, and of a year that is written with four digits."""
        moment: datetime | None = self.cleaned_data[name]
        with suppress(OverflowError):  # beyond the first or the last day there is
            if moment is None or moment.astimezone(UTC).year >= 1000:
                return moment
        raise ValidationError(said.TIME_UNREADABLE())

    def _clean_window(self, start: datetime | None, end: datetime | None) -> None:
        if end is None:
            return
        if end <= self.now:
            self.add_error("not_after", said.TIME_PASSED(now=f"{self.now.astimezone(UTC):%d %b %H:%M}"))
        elif start is not None and end <= start:
            self.add_error("not_after", drafts.WINDOW_TURNED_ROUND())

    def _ask_twice(self, low: int, rate: int) -> None:
        """Slow is sometimes meant and mostly a slip: it needs a second yes."""
        if rate < SLOW_BELOW or low < SLOW_BELOW:
            slow = rate if rate < SLOW_BELOW else low
            entry, values = said.VERY_SLOW, {"rate": both(slow), "hours": _hours(1e9 / slow)}
        elif self.inbound is not None and low < self.inbound:
            entry, values = said.NEVER_FINISHES, {"rate": both(low), "inbound": f"{self.inbound / 1e6:,.1f}"}
        else:
            return
        self.asks_twice = entry.cause(**values)
        if not self.cleaned_data.get("confirmed"):
            self.add_error("confirmed", entry(**values))


class WhyForm(WizardForm):
    title = forms.CharField(label="Title", required=False)
    why = forms.CharField(label="Why", required=False)

    def clean_title(self) -> str:
        title = " ".join(self.cleaned_data["title"].split())
        if not title:
            raise ValidationError(said.TITLE_MISSING())
        if len(title) > LONGEST_TITLE:
            raise ValidationError(said.TITLE_DOES_NOT_FIT(length=len(title), most=LONGEST_TITLE))
        return title

    def clean_why(self) -> str:
        why: str = self.cleaned_data["why"].strip()
        if len(why) > LONGEST_WHY:
            raise ValidationError(said.REASON_DOES_NOT_FIT(length=len(why), most=LONGEST_WHY))
        return why


def broker_ids(typed: str) -> tuple[int, ...]:
    """ "3,7" → (3, 7), sorted, each once. Raises ValidationError."""
    parts = [part.strip() for part in typed.split(",") if part.strip()]
    bad = [part for part in parts if not _ID.fullmatch(part)]
    if bad:
        shown = bad[0] if len(bad[0]) <= 30 else f"{bad[0][:29]}…"
        raise ValidationError(said.NO_BROKER_ID(typed=shown))
    return tuple(sorted({int(part) for part in parts}))


def _stamp(moment: datetime | None) -> str:
    return moment.astimezone(UTC).strftime(_STAMP) if moment else ""


def moment_of(stamp: str) -> datetime | None:
    """Of a stamp as ``Options`` keeps it; None where it is open."""
    return datetime.strptime(stamp, _STAMP).replace(tzinfo=UTC) if stamp else None


def _hours(seconds: float) -> str:
    return f"{seconds / 3600:,.1f} h" if seconds < 172_800 else f"{seconds / 86_400:,.0f} days"


def _in_words(value: Any) -> str:
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
