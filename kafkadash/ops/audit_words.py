"""What was done, in words: one catalogue of the actions that the parts of kafkadash record.

An action that is not in it is shown as it was recorded; so is a value that no rule here knows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

ACTIONS: Mapping[str, Mapping[str, str]] = {
    "Change requests": {
        "change.created": "began a draft",
        "change.edited": "edited a draft",
        "change.planned": "made a plan",
        "change.submitted": "proposed a change",
        "change.reopened": "took a change back to a draft",
        "change.withdrawn": "withdrew a change",
        "change.approved": "approved a change",
        "change.declined": "declined a change",
        "change.commented": "commented on a change",
        "change.turned_stale": "found a change out of date",
        "change.refresh_started": "began to refresh a change",
        "change.refreshed": "refreshed a change",
        "change.expired": "let a change expire",
        "change.scheduled": "queued a change, as its window began",
        "change.broke_glass": "queued a change without its approvals",
        "change.started": "started a change",
        "change.turn_came": "began a run",
        "change.paused": "paused a run",
        "change.resumed": "resumed a run",
        "change.throttle_changed": "changed the throttle of a run",
        "change.throttle_vanished": "found the throttle of a run removed",
        "change.throttle_foreign": "found somebody else’s rate in the place of a run’s",
        "change.throttle_left": "left a throttle that was not a run’s any more",
        "change.throttle_late": "found a throttle that a late call had set",
        "change.throttle_obliged": "put off the clearing of a throttle",
        "change.throttle_settled": "cleared what a run still owed",
        "change.parallel_changed": "changed how many moves a run makes at once",
        "change.ordered": "asked something of a run",
        "change.cancelled": "cancelled a run",
        "change.came_late": "found that a request reached Kafka late",
        "change.braked": "submits nothing more, for the sake of min-ISR",
        "change.brake_released": "submits again, as min-ISR is kept",
        "change.rows_ended": "ended the last row of a run",
        "change.cancel_ended": "ended a cancelled run",
        "change.verified": "verified a run",
        "change.failed": "gave up a run",
        "change.rollback_proposed": "began the rollback of a change",
        "change.row_replanned": "began another plan for a row of a run",
        "change.copied": "copied a change",
        "change.deleted": "deleted a draft",
        "policy.changed": "changed the policy of a cluster",
        "policy.loosening_asked": "asked to loosen the policy of a cluster",
        "policy.loosening_confirmed": "confirmed a looser policy of a cluster",
        "policy.loosening_dropped": "dropped a looser policy of a cluster",
        "policy.loosened": "loosened the policy of a cluster, as confirmed",
    },
    "Clusters": {
        "cluster.registered": "registered a cluster",
        "cluster.connection_changed": "changed a connection",
        "cluster.connection_tested": "tested a connection",
        "cluster.identified": "learned which Kafka it is",
        "cluster.read_only_changed": "changed whether a cluster is read-only",
        "cluster.enabled": "switched a cluster on",
        "cluster.disabled": "switched a cluster off",
        "cluster.removed": "removed a cluster",
        "allowed_lag.set": "allowed groups a lag",
        "allowed_lag.removed": "took an allowed lag away",
    },
    "Findings": {"finding.acknowledged": "took a finding", "finding.released": "gave a finding back"},
    "People": {
        "role.given": "gave a role",
        "role.removed": "took a role away",
        "user.created": "created an account",
        "user.closed": "closed an account",
        "user.opened": "opened an account again",
        "user.password_set": "set a password",
        "user.password_changed": "changed the own password",
        "user.signed_in": "signed in",
        "user.signed_out": "signed out",
        "user.sessions_ended": "ended other sessions",
        "user.sign_in_failed": "was refused at sign-in",
    },
    "Audit": {"audit.exported": "exported the audit"},
}
WORDS: Mapping[str, str] = {action: words for group in ACTIONS.values() for action, words in group.items()}

NOTHING = "nothing"
LONGEST_IN_LIST = 160
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Changed:
    """One field of an event. ``before`` and ``after`` are words; None where that side was not recorded."""

    field: str
    before: str | None
    after: str | None


def action_words(action: str) -> str:
    return WORDS.get(action, action)


def changed(before: object, after: object) -> list[Changed]:
    """The fields that differ between two recorded values, in the order in which they were recorded."""
    old, new = _fields(before), _fields(after)
    names = list(dict.fromkeys([*old, *new]))
    return [
        Changed(
            field_words(name),
            value_words(old[name]) if name in old else None,
            value_words(new[name]) if name in new else None,
        )
        for name in names
        if name not in old or name not in new or old[name] != new[name]
    ]


def field_words(name: str) -> str:
    return name.replace("_", " ")


def value_words(value: object) -> str:
    """A recorded value as a person reads it."""
    if value in (None, "", [], {}):
        return NOTHING
    match value:
        case bool():
            return "yes" if value else "no"
        case str():
            return value
        case list() if all(isinstance(item, str | int | float) for item in value):
            return ", ".join(map(str, value))
        case _:
            return json.dumps(value, ensure_ascii=False)


def short(text: str) -> str:
    """As a list shows it; of a digest, what is enough to tell it from others."""
    if _DIGEST.fullmatch(text):
        return f"{text[:12]}…"
    return text if len(text) <= LONGEST_IN_LIST else f"{text[: LONGEST_IN_LIST - 1]}…"


def _fields(recorded: object) -> Mapping[str, Any]:
    if recorded is None:
        return {}
    return recorded if isinstance(recorded, dict) else {"value": recorded}
