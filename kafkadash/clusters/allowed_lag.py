"""Allowed lag of consumer groups: rules by group name or by pattern, and the services that add and remove rules.

In a pattern ``*`` stands for any characters and ``?`` for one; all other characters are literal, and case counts. A
rule with exactly the name of the group wins, even if that name contains wildcards. Among several patterns the order is:
most literal characters, fewest ``*``, longest, then alphabetical. So the order in which rules were added never matters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from django.db import transaction
from django.http import HttpRequest

from kafkadash.accounts.models import User
from kafkadash.accounts.services import record
from kafkadash.clusters.errors import ClusterErrorCode
from kafkadash.clusters.models import AllowedLag, Cluster
from kafkadash.clusters.services import ClusterRefused
from kafkadash.core.messages import message_text


@dataclass(frozen=True, slots=True)
class LagAllowance:
    """``records`` that may wait in each partition of a group of this name or pattern."""

    pattern: str
    records: int


class AllowedLags:
    """All rules of one cluster. Asking for a group takes one pass over its name for all patterns together."""

    def __init__(self, rules: Iterable[LagAllowance]) -> None:
        self._by_name = {rule.pattern: rule for rule in rules}
        wild = sorted((r for r in self._by_name.values() if _WILD.search(r.pattern)), key=_most_specific_first)
        self._wild = wild
        # Python tries alternatives from left to right, so the first that fits is the one that goes first.
        self._fits = re.compile("|".join(f"({_translate_pattern(rule.pattern)})" for rule in wild), re.DOTALL)

    def rule_of(self, group: str) -> LagAllowance | None:
        """The rule that decides; None where none fits, and so no lag is allowed."""
        if exact := self._by_name.get(group):
            return exact
        found = self._fits.fullmatch(group) if self._wild else None
        return self._wild[found.lastindex - 1] if found and found.lastindex else None

    def of(self, group: str) -> int:
        """In records, for each of its partitions."""
        rule = self.rule_of(group)
        return rule.records if rule else 0


def allowed_lags(records_by_pattern: Mapping[str, int]) -> AllowedLags:
    """The same rules are made ready once only: a collector asks for them at each look."""
    return _build_allowed_lags(tuple(sorted(records_by_pattern.items())))


@lru_cache(maxsize=64)
def _build_allowed_lags(rules: tuple[tuple[str, int], ...]) -> AllowedLags:
    return AllowedLags(LagAllowance(*rule) for rule in rules)


_WILD = re.compile(r"[*?]")


def _most_specific_first(rule: LagAllowance) -> tuple[int, int, int, str]:
    own = len(_WILD.sub("", rule.pattern))
    return -own, rule.pattern.count("*"), -len(rule.pattern), rule.pattern


def _translate_pattern(pattern: str) -> str:
    """Return a regular expression for a whole name. Text between two ``*`` is taken where it comes first and never
    looked for again (an atomic group): finds a match if there is one, in time that grows with no power of the length.
    """
    first, *others = (
        "".join("." if character == "?" else re.escape(character) for character in part)
        for part in re.sub(r"\*+", "*", pattern).split("*")
    )
    if not others:
        return first
    middle = "".join(f"(?>.*?{part})" for part in others[:-1])
    return f"{first}{middle}.*{others[-1]}"


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
        raise ClusterRefused({name: [sentence] for name, sentence in wrong.items() if sentence})
    records = _number(typed)
    with transaction.atomic():
        # Of two that add a rule at once the second counts those of the first.
        Cluster.objects.select_for_update(no_key=True).get(pk=cluster.pk)
        held = AllowedLag.objects.filter(cluster=cluster, pattern=pattern).first()
        if held is None and AllowedLag.objects.filter(cluster=cluster).count() >= MOST_RULES:
            raise ClusterRefused(
                {"": [message_text(ClusterErrorCode.LAG_TOO_MANY_RULES, cluster=cluster.name, most=MOST_RULES)]}
            )
        before = _rule_as_dict(held) if held else None
        rule, _ = AllowedLag.objects.update_or_create(cluster=cluster, pattern=pattern, defaults={"records": records})
        if before != _rule_as_dict(rule):
            record(
                actor,
                "allowed_lag.set",
                cluster,
                cluster=cluster.slug,
                before=before,
                after=_rule_as_dict(rule),
                request=request,
            )
    return rule


def remove_allowed_lag(
    actor: User | str, cluster: Cluster, pattern: str, *, request: HttpRequest | None = None
) -> None:
    """Raises Refused where there is no such rule."""
    with transaction.atomic():
        # PostgreSQL takes no text with a zero in it, not even to say that there is none like it.
        rows = AllowedLag.objects.select_for_update().filter(cluster=cluster, pattern=pattern.replace("\0", ""))
        held = rows.first()
        if held is None:
            raise ClusterRefused({"": [message_text(ClusterErrorCode.LAG_RULE_GONE)]})
        before = _rule_as_dict(held)
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


def _rule_as_dict(rule: AllowedLag) -> dict[str, str | int]:
    return {"pattern": rule.pattern, "records": rule.records}
