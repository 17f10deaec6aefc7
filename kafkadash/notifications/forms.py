"""Forms of receivers and routes."""

from __future__ import annotations

from typing import Any

from django import forms

from kafkadash.accounts.errors import form_error
from kafkadash.clusters.forms import SettingsForm, TimeZoneField
from kafkadash.clusters.models import Cluster
from kafkadash.notifications.apprise_services import SERVICE_NAMES
from kafkadash.notifications.errors import DeliveryErrorCode
from kafkadash.notifications.kinds import known_kinds
from kafkadash.notifications.models import TargetKind
from kafkadash.notifications.rules import SentChanges
from kafkadash.notifications.services import ReceiverRefused

SEVERITIES = (
    ("warning", "critical, unknown and warning"),
    ("unknown", "critical and unknown"),
    ("critical", "critical only"),
)
CHANGES = (
    (SentChanges.NONE.value, "none"),
    (SentChanges.WAITING.value, "only those that wait for approval"),
    (SentChanges.ALL.value, "all"),
)
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_ADDRESS_HINTS = {
    TargetKind.WEBHOOK: "URL that accepts POST with JSON. Requests are signed (Standard Webhooks).",
    TargetKind.SLACK: "URL of an incoming webhook of Slack.",
    TargetKind.TEAMS: "URL of a workflow that posts to a channel when a webhook request is received.",
    TargetKind.PAGERDUTY: "Integration key of an Events API V2 integration.",
    TargetKind.EMAIL: "E-mail addresses, comma-separated.",
    TargetKind.APPRISE: f"URL as Apprise writes it, such as discord://ID/TOKEN. Services: {', '.join(SERVICE_NAMES)}.",
}


class ReceiverForm(SettingsForm):
    """Name and address of a receiver. The address is only taken, never shown."""

    name = forms.CharField(label="Name", required=False, max_length=64)
    address = forms.CharField(label="Address", required=False)
    enabled = forms.BooleanField(label="Send messages", required=False, initial=True)

    def __init__(self, *args: Any, kind: TargetKind, stored: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._stored = stored
        kept = "Set, not shown. Leave empty to keep it. " if stored else ""
        self.fields["address"].help_text = kept + _ADDRESS_HINTS[kind]
        self.fields["address"].label = {
            TargetKind.PAGERDUTY: "Integration key",
            TargetKind.EMAIL: "E-mail addresses",
            TargetKind.APPRISE: "Apprise URL",
        }.get(kind, "URL")

    def clean_name(self) -> str:
        name = str(self.cleaned_data["name"]).strip()
        if not name:
            raise form_error(DeliveryErrorCode.NAME_NEEDED)
        return name

    def clean_address(self) -> str:
        return str(self.cleaned_data["address"]).strip()


class RouteForm(SettingsForm):
    """Events that a receiver is sent: from where, which, and when."""

    hints = {
        "begins": "The same time twice is the whole day. An end before the begin is on the next day.",
        "kinds": "Select kinds; all if none is selected",
        "weekdays": "Select days; every day if none is selected",
    }

    cluster = forms.ChoiceField(label="Cluster", required=False)
    findings = forms.BooleanField(label="Findings", required=False, initial=True)
    changes = forms.ChoiceField(label="Changes", choices=CHANGES, required=False, initial=SentChanges.NONE.value)
    severity = forms.ChoiceField(label="Severity of findings", choices=SEVERITIES, required=False, initial="warning")
    kinds = forms.MultipleChoiceField(label="Kinds of findings", required=False)
    weekdays = forms.MultipleChoiceField(
        label="Days", choices=[(str(day), name) for day, name in enumerate(WEEKDAYS)], required=False
    )
    begins = forms.TimeField(label="From", required=False, initial="00:00")
    ends = forms.TimeField(label="To", required=False, initial="00:00")
    time_zone = TimeZoneField()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        clusters = Cluster.objects.order_by("name").values_list("pk", "name")
        self.fields["cluster"].choices = [("", "all clusters"), *((str(pk), name) for pk, name in clusters)]  # type: ignore[attr-defined]
        self.fields["kinds"].choices = [(kind.value, kind.name) for kind in known_kinds().values()]  # type: ignore[attr-defined]

    def columns(self) -> dict[str, Any]:
        """Return the columns of the route. Raises ReceiverRefused where the cluster is gone."""
        given = self.cleaned_data
        cluster = None
        if given["cluster"]:
            cluster = Cluster.objects.filter(pk=int(given["cluster"])).first()
            if cluster is None:
                raise ReceiverRefused("cluster", DeliveryErrorCode.CLUSTER_UNKNOWN)
        midnight = "00:00"
        return {
            "cluster": cluster,
            "findings": given["findings"],
            "changes": given["changes"] or SentChanges.NONE.value,
            "severity": given["severity"] or "warning",
            "kinds": given["kinds"],
            "weekdays": [int(day) for day in given["weekdays"]],
            "begins": given["begins"] or midnight,
            "ends": given["ends"] or midnight,
            "time_zone": given["time_zone"],
        }
