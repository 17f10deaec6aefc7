"""Forms of a maintenance window and of a silence. Times are local ones of a time zone that is chosen with them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.db.models import Q
from django.utils.text import capfirst

from kafkadash.accounts.errors import form_error
from kafkadash.clusters.forms import CheckedChoiceField, SettingsForm, TimeZoneField
from kafkadash.clusters.models import Cluster
from kafkadash.core.local_times import LocalTimeFault, read_local_time
from kafkadash.core.messages import coded
from kafkadash.maintenance.errors import MaintenanceErrorCode
from kafkadash.maintenance.models import QuietPeriod, QuietPurpose, describe_scope
from kafkadash.monitoring.models import BrokerState
from kafkadash.notifications.kinds import known_kinds

LONGEST_REASON = 500
LONGEST_SUBJECT = 255
LONGEST_WINDOW = timedelta(days=30)
LONGEST_SILENCE = timedelta(days=90)
FURTHEST_BEGIN = timedelta(days=90)
_TYPED_LATE = timedelta(minutes=5)
"""A begin of so long ago is now: it was typed while the clock went on."""
WHOLE_CLUSTER = "cluster"


class _PeriodForm(SettingsForm):
    """Fields of windows and silences alike: the reason, the end and its time zone."""

    html_id = ""
    longest = LONGEST_WINDOW

    reason = forms.CharField(label="Reason", required=False)
    ends = forms.CharField(label="End", required=False)
    time_zone = TimeZoneField()

    def __init__(self, *args: Any, cluster: Cluster, now: datetime, **kwargs: Any) -> None:
        super().__init__(*args, auto_id=f"{self.html_id}-%s", **kwargs)
        self._cluster, self._now = cluster, now
        self.fields["reason"].help_text = f"All users see it. At most {LONGEST_REASON} characters."
        self.fields["time_zone"].help_text = "UTC, or one such as Europe/Berlin."

    def clean_reason(self) -> str:
        reason = str(self.cleaned_data["reason"]).strip()
        if not reason:
            raise form_error(MaintenanceErrorCode.REASON_MISSING)
        if len(reason) > LONGEST_REASON:
            raise form_error(MaintenanceErrorCode.REASON_TOO_LONG, typed=len(reason), most=LONGEST_REASON)
        return reason

    def clean(self) -> dict[str, Any]:
        given = self.cleaned_data
        if "time_zone" in given:
            self._read_times(given)
        return given

    def _read_times(self, given: dict[str, Any]) -> None:
        begins = self._read_time("begins", given.get("begins", ""), later=False) or self._now
        if begins < self._now - _TYPED_LATE:
            self._refuse("begins", MaintenanceErrorCode.BEGIN_PAST)
        elif begins - self._now > FURTHEST_BEGIN:
            self._refuse("begins", coded(MaintenanceErrorCode.BEGIN_TOO_LATE, days=FURTHEST_BEGIN.days))
        begins = max(begins, self._now)
        if not given.get("ends"):
            self._refuse("ends", MaintenanceErrorCode.END_MISSING)
            return
        ends = self._read_time("ends", given["ends"], later=True)
        if ends is None or "begins" in self.errors:
            return
        if ends <= self._now:
            self._refuse("ends", MaintenanceErrorCode.END_PAST)
        elif ends <= begins:
            self._refuse("ends", MaintenanceErrorCode.END_BEFORE_BEGIN)
        elif ends - begins > self.longest:
            self._refuse("ends", coded(MaintenanceErrorCode.TOO_LONG, days=self.longest.days))
        given["span"] = (begins, ends)

    def _read_time(self, name: str, typed: str, *, later: bool) -> datetime | None:
        """Return the time of a field; None for an empty one, and for one that is refused."""
        if not typed:
            return None
        zone = self.cleaned_data["time_zone"]
        found = read_local_time(typed, zone, later=later)
        if isinstance(found, datetime):
            return found
        if found is LocalTimeFault.SKIPPED:
            self._refuse(name, coded(MaintenanceErrorCode.TIME_SKIPPED, typed=typed[:40], time_zone=zone))
        else:
            self._refuse(name, coded(MaintenanceErrorCode.TIME_UNREADABLE, typed=typed[:40]))
        return None

    def _build_period(self, purpose: QuietPurpose, **columns: Any) -> QuietPeriod:
        begins, ends = self.cleaned_data["span"]
        return QuietPeriod(
            cluster=self._cluster,
            purpose=purpose,
            begins_at=begins,
            ends_at=ends,
            reason=self.cleaned_data["reason"],
            **columns,
        )


class WindowForm(_PeriodForm):
    """Maintenance of the cluster, of a broker, or of the brokers of a rack."""

    html_id = "window"
    hints = {
        "begins": "Empty: now. Of a time that occurs twice, the earlier one counts.",
        "ends": "At most 30 days later. Of a time that occurs twice, the later one counts.",
    }

    scope = CheckedChoiceField(label="Of", required=False)
    begins = forms.CharField(label="Begin", required=False)

    field_order = ("scope", "reason", "begins", "ends", "time_zone")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._scopes = _list_scopes(self._cluster)
        named = [(key, capfirst(describe_scope(*scope))) for key, scope in self._scopes.items()]
        self.fields["scope"].choices = [(WHOLE_CLUSTER, "The whole cluster"), *named]  # type: ignore[attr-defined]

    def clean_scope(self) -> str:
        scope = str(self.cleaned_data["scope"]) or WHOLE_CLUSTER
        if scope != WHOLE_CLUSTER and scope not in self._scopes:
            raise form_error(MaintenanceErrorCode.SCOPE_UNKNOWN)
        return scope

    def build_period(self) -> QuietPeriod:
        broker, rack = self._scopes.get(self.cleaned_data["scope"], (None, None))
        return self._build_period(QuietPurpose.MAINTENANCE, broker=broker, rack=rack)


class SilenceForm(_PeriodForm):
    """Findings of a kind, of a subject, or of a kind of one subject."""

    html_id = "silence"
    longest = LONGEST_SILENCE
    hints = {
        "subject": "ID of a broker, name of a consumer group, or log directory as 3:/data. Without a kind, 3 is "
        "broker 3 and the group 3. Empty: all.",
        "ends": "At most 90 days ahead. Of a time that occurs twice, the later one counts.",
    }

    kind = CheckedChoiceField(label="Kind of findings", required=False)
    subject = forms.CharField(label="Subject", required=False)

    field_order = ("kind", "subject", "reason", "ends", "time_zone")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["kind"].choices = [("", "All kinds"), *((kind.value, kind.name) for kind in known_kinds().values())]  # type: ignore[attr-defined]

    def clean_kind(self) -> str:
        kind = str(self.cleaned_data["kind"])
        if kind and kind not in known_kinds():
            raise form_error(MaintenanceErrorCode.KIND_UNKNOWN)
        return kind

    def clean_subject(self) -> str:
        subject = str(self.cleaned_data["subject"]).strip()
        if len(subject) > LONGEST_SUBJECT:
            raise form_error(MaintenanceErrorCode.SUBJECT_TOO_LONG, typed=len(subject), most=LONGEST_SUBJECT)
        return subject

    def clean(self) -> dict[str, Any]:
        given = super().clean()
        if not (given.get("kind") or given.get("subject") or self.errors.keys() & {"kind", "subject"}):
            self._refuse("kind", MaintenanceErrorCode.NOTHING_SILENCED)
        return given

    def build_period(self) -> QuietPeriod:
        given = self.cleaned_data
        return self._build_period(QuietPurpose.SILENCE, kind=given["kind"], subject=given["subject"])


def _list_scopes(cluster: Cluster) -> dict[str, tuple[int | None, str | None]]:
    """Return the brokers and racks that a window may be of, by the value of their choice.

    A broker that is no longer registered is one of them while replicas are assigned to it.
    """
    known = BrokerState.objects.filter(Q(gone_at=None) | Q(replicas__gt=0), cluster=cluster)
    rows = list(known.order_by("broker_id").values_list("broker_id", "rack"))
    racks = sorted({rack for _, rack in rows if rack is not None})
    return {
        **{f"broker:{broker}": (broker, None) for broker, _ in rows},
        **{f"rack:{rack}": (None, rack) for rack in racks},
    }
