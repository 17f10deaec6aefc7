"""Form of an acknowledgement: a note, and its end as a local time or as a preset of minutes."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django import forms

from kafkadash.accounts.errors import form_error
from kafkadash.clusters.forms import SettingsForm, TimeZoneField
from kafkadash.core.local_times import LocalTimeFault, read_local_time
from kafkadash.findings.errors import OnCallErrorCode
from kafkadash.findings.services import AcknowledgementTerms

LONGEST_NOTE = 500
LONGEST_TERM = timedelta(days=90)
SNOOZE_PRESETS = ((30, "30 min"), (60, "1 h"), (240, "4 h"), (480, "8 h"), (1440, "24 h"), (10080, "7 days"))
"""Minutes, and the words of the button."""


class AcknowledgementForm(SettingsForm):
    """``snooze``: minutes of the preset that was pressed. Without it and without an end, it lasts until the close."""

    hints = {
        "note": f"All users see it. At most {LONGEST_NOTE} characters.",
        "until": "Empty: until the finding closes. Then it is unacknowledged again.",
        "time_zone": "UTC, or one such as Europe/Berlin. Of a time that occurs twice, the later one counts.",
    }

    note = forms.CharField(label="Note", required=False)
    until = forms.CharField(label="Until", required=False)
    time_zone = TimeZoneField()
    snooze = forms.CharField(required=False)

    def __init__(self, *args: Any, now: datetime, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._now = now

    def clean_note(self) -> str:
        note = str(self.cleaned_data["note"]).strip()
        if len(note) > LONGEST_NOTE:
            raise form_error(OnCallErrorCode.NOTE_TOO_LONG, typed=len(note), most=LONGEST_NOTE)
        return note

    def clean_snooze(self) -> int | None:
        typed = str(self.cleaned_data["snooze"])
        minutes = {str(preset): preset for preset, _ in SNOOZE_PRESETS}
        if typed and typed not in minutes:
            raise form_error(OnCallErrorCode.END_UNREADABLE)
        return minutes.get(typed)

    def clean(self) -> dict[str, Any]:
        given = self.cleaned_data
        given["end"] = None
        if given.get("snooze"):
            given["end"] = self._now + timedelta(minutes=given["snooze"])
        elif given.get("until") and "time_zone" in given:
            end = find_end(given["until"], given["time_zone"], self._now)
            if isinstance(end, OnCallErrorCode):
                self._refuse("until", end)
            else:
                given["end"] = end
        return given

    def terms(self) -> AcknowledgementTerms:
        given = self.cleaned_data
        return AcknowledgementTerms(given["note"], given["end"], snoozed=bool(given["snooze"]))


def find_end(typed: str, time_zone: str, now: datetime) -> datetime | OnCallErrorCode:
    """Return the end in UTC, or why there is none. Where clocks are set back, the later of the two times is meant."""
    end = read_local_time(typed, time_zone, later=True)
    if isinstance(end, LocalTimeFault):
        return OnCallErrorCode.END_SKIPPED if end is LocalTimeFault.SKIPPED else OnCallErrorCode.END_UNREADABLE
    if end <= now:
        return OnCallErrorCode.END_PAST
    return OnCallErrorCode.END_TOO_LATE if end - now > LONGEST_TERM else end
