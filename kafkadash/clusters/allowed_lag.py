"""How much lag groups may have: the rules of a cluster, and what they come to for its groups."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from django.db import transaction
from django.http import HttpRequest

from kafkadash.accounts.audit import record
from kafkadash.accounts.models import User
from kafkadash.clusters.errors import ClusterErrorCode
from kafkadash.clusters.models import AllowedLag, Cluster
from kafkadash.clusters.services import Refused
from kafkadash.domain.allowed_lag import allowed_lags
from kafkadash.domain.messages import message_text

MOST_RULES = 100
MOST_RECORDS = 10**12
LONGEST_PATTERN = 255

_NUMBER = re.compile(r"-?([0-9]+|[0-9]{1,3}([ ,_\u00a0][0-9]{3})+)")
_LONGEST_NUMBER = 40


def allowed_for(cluster_id: int, groups: Iterable[str]) -> Mapping[str, int]:
    """Group → records that may wait in each of its partitions, 0 where no rule fits. One query for any number."""
    rules = allowed_lags(dict(AllowedLag.objects.filter(cluster=cluster_id).values_list("pattern", "records")))
    return {group: rules.of(group) for group in groups}


def allow_lag(
    actor: User | str, cluster: Cluster, pattern: str, typed: str, *, request: HttpRequest | None = None
) -> AllowedLag:
    """A rule for a group or a pattern of groups; given again, it gets the new number. ``typed``: "10,000".

    Raises Refused with a sentence for each thing that is wrong.
    """
    pattern = pattern.strip()
    wrong = {"pattern": _wrong_pattern(pattern), "records": _wrong_records(typed)}
    if any(wrong.values()):
        raise Refused({name: [sentence] for name, sentence in wrong.items() if sentence})
    records = _number(typed)
    with transaction.atomic():
        # Of two that add a rule at once the second counts those of the first.
        Cluster.objects.select_for_update(no_key=True).get(pk=cluster.pk)
        held = AllowedLag.objects.filter(cluster=cluster, pattern=pattern).first()
        if held is None and AllowedLag.objects.filter(cluster=cluster).count() >= MOST_RULES:
            raise Refused(
                {"": [message_text(ClusterErrorCode.LAG_TOO_MANY_RULES, cluster=cluster.name, most=MOST_RULES)]}
            )
        before = _facts(held) if held else None
        rule, _ = AllowedLag.objects.update_or_create(cluster=cluster, pattern=pattern, defaults={"records": records})
        if before != _facts(rule):
            record(
                actor,
                "allowed_lag.set",
                cluster,
                cluster=cluster.slug,
                before=before,
                after=_facts(rule),
                request=request,
            )
    return rule


def remove_allowed_lag(
    actor: User | str, cluster: Cluster, pattern: str, *, request: HttpRequest | None = None
) -> None:
    """Raises Refused where there is no such rule."""
    with transaction.atomic():
        # PostgreSQL takes no text with a zero in it, not even to say that there is none like it.
        asked = AllowedLag.objects.select_for_update().filter(cluster=cluster, pattern=pattern.replace("\0", ""))
        held = asked.first()
        if held is None:
            raise Refused({"": [message_text(ClusterErrorCode.LAG_RULE_GONE)]})
        before = _facts(held)
        held.delete()
        record(actor, "allowed_lag.removed", cluster, cluster=cluster.slug, before=before, request=request)


def _wrong_pattern(pattern: str) -> str:
    if not pattern:
        return message_text(ClusterErrorCode.LAG_PATTERN_EMPTY)
    if len(pattern) > LONGEST_PATTERN:
        return message_text(ClusterErrorCode.LAG_PATTERN_TOO_LONG, length=len(pattern), most=LONGEST_PATTERN)
    for place, character in enumerate(pattern, 1):
        if not character.isprintable():
            return message_text(ClusterErrorCode.LAG_PATTERN_NOT_PRINTABLE, place=place)
    return ""


def _wrong_records(typed: str) -> str:
    typed = typed.strip()
    if not _NUMBER.fullmatch(typed):
        return message_text(ClusterErrorCode.LAG_UNREADABLE)
    if typed.startswith("-") and typed.strip("-0, _\u00a0"):
        return message_text(ClusterErrorCode.LAG_NEGATIVE)
    if len(typed) > _LONGEST_NUMBER or _number(typed) > MOST_RECORDS:
        return message_text(ClusterErrorCode.LAG_TOO_LARGE, most=MOST_RECORDS)
    return ""


def _number(typed: str) -> int:
    return int(re.sub(r"[^0-9]", "", typed))


def _facts(rule: AllowedLag) -> dict[str, str | int]:
    return {"pattern": rule.pattern, "records": rule.records}
