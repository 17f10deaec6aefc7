"""The wizard's first step for each mode: what is asked for, judged against the cluster as it was last read."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from kafkadash.accounts.errors import form_error
from kafkadash.clusters.models import Cluster
from kafkadash.domain.messages import message_text
from kafkadash.domain.planner.request import EPS
from kafkadash.domain.refusals import asked as refused
from kafkadash.domain.refusals import plan_requests
from kafkadash.domain.wording import capital
from kafkadash.reassign.asked import (
    ADD,
    BALANCE,
    DRAIN,
    FINISH,
    LEADERS,
    OF_BROKERS,
    REPAIR_RACKS,
    REPLACE,
    SET_RF,
    Asked,
    broker_names,
)
from kafkadash.reassign.brokers import BrokerChoice, BrokerRow, without_rack
from kafkadash.reassign.errors import ReassignmentErrorCode
from kafkadash.reassign.forms import WizardForm, broker_ids, in_words
from kafkadash.reassign.topic_counts import BadChoice, counted, names_in
from kafkadash.reassign.uploads import Brought, TooLarge, from_file, from_text

OUT, IN = "out", "in"
"""What becomes of a broker where some are replaced: it is, or it takes over."""
_WHOLE = re.compile(r"\d{1,4}")
_PERCENT = re.compile(r"\d{1,3}(\.\d{1,2})?")
_FIELDS: Mapping[str, tuple[str, ...]] = {
    ADD: ("brokers", "rebalance", "ignore_racks"),
    DRAIN: ("brokers", "rebalance", "ignore_racks", "accept_fewer_racks"),
    REPLACE: ("brokers", "replacements", "rebalance", "ignore_racks", "accept_fewer_racks"),
    REPAIR_RACKS: (),
    SET_RF: ("factor", "rebalance", "ignore_racks"),
    BALANCE: ("disks", "eps", "leaders", "ignore_racks"),
    LEADERS: (),
}
_OF_ALL = ("topics", "pattern", "excluded", "version")
_LABELS = {ADD: "Brokers to add", DRAIN: "Brokers to drain", REPLACE: "Brokers to replace"}
_MISSING: Mapping[str, Callable[[], str]] = {
    ADD: plan_requests.NO_BROKERS_TO_ADD,
    DRAIN: lambda: message_text(ReassignmentErrorCode.NO_BROKER_CHOSEN),
    REPLACE: plan_requests.NO_BROKERS_TO_REPLACE,
}


class PlannedForm(WizardForm):
    """Of a mode in which the planner chooses where replicas go; it has the fields of that mode only."""

    brokers = forms.MultipleChoiceField(label="Brokers", required=False)
    replacements = forms.CharField(label="Brokers that take over", required=False)
    factor = forms.CharField(label="Replication factor", required=False)
    disks = forms.BooleanField(label="Even out the disks", required=False)
    eps = forms.CharField(label="Disks within", required=False)
    leaders = forms.BooleanField(label="Even out who leads", required=False)
    topics = forms.CharField(label="Topics by name", required=False)
    pattern = forms.CharField(label="Topics by regular expression", required=False)
    excluded = forms.CharField(label="Topics left out", required=False)
    rebalance = forms.BooleanField(label="Let others move too", required=False)
    ignore_racks = forms.BooleanField(label="Plan without regard to racks", required=False)
    accept_fewer_racks = forms.BooleanField(label="Accept fewer racks", required=False)

    def __init__(
        self,
        data: Mapping[str, Any] | None,
        *,
        cluster: Cluster,
        choices: Sequence[BrokerChoice],
        before: Asked,
        version: int,
    ) -> None:
        values = {name: _typed(value) for name, value in self.stored(before).items()}
        super().__init__(data, initial={**values, "version": version})
        self.cluster, self.choices, self.before, self.mode = cluster, choices, before, before.mode
        for name in [n for n in self.fields if n not in (*_FIELDS[self.mode], *_OF_ALL)]:
            del self.fields[name]
        if self.mode in OF_BROKERS:
            self.fields["brokers"].label = _LABELS[self.mode]
        self.rackless = without_rack(choices)
        self.racks = len({choice.rack for choice in choices if choice.rack is not None})
        self.takers = sum(choice.takes for choice in choices)

    @staticmethod
    def stored(asked: Asked) -> dict[str, Any]:
        """As ``cleaned_data`` has it."""
        return {
            **{name: getattr(asked, name) for name in PlannedForm.base_fields if hasattr(asked, name)},
            "disks": asked.eps is not None,
            "eps": EPS if asked.eps is None else asked.eps,
        }

    @property
    def rows(self) -> list[BrokerRow]:
        """As they are on the page."""
        chosen = {str(one) for one in self["brokers"].value() or ()}
        return [BrokerRow(one, str(one.id) in chosen, self._role(one.id)) for one in self.choices]

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
            raise ValidationError(_MISSING[self.mode]())
        known = {choice.id: choice for choice in self.choices}
        missing = [id_ for id_ in ids if id_ not in known]
        if missing:
            has = f"It has {broker_names(sorted(known))}." if known else "No broker of it was seen yet."
            names = broker_names(missing)
            raise form_error(ReassignmentErrorCode.BROKER_NOT_THERE, cluster=self.cluster.name, brokers=names, has=has)
        if self.mode == ADD:
            _refuse_unfit([known[id_] for id_ in ids])
        elif self.mode == DRAIN and not any(choice.takes and choice.id not in ids for choice in self.choices):
            raise form_error(ReassignmentErrorCode.NO_BROKER_LEFT, cluster=self.cluster.name)
        return ids

    def clean_replacements(self) -> tuple[int, ...]:
        ids = self._with_role(IN)
        if not ids and self.cleaned_data.get("brokers"):
            names = broker_names(self.cleaned_data["brokers"])
            raise ValidationError(plan_requests.NO_REPLACEMENTS(brokers=names))
        _refuse_unfit([choice for choice in self.choices if choice.id in ids])
        return ids

    def clean_factor(self) -> int:
        typed = self.cleaned_data["factor"].strip()
        if not typed:
            raise ValidationError(plan_requests.NO_FACTOR())
        if not _WHOLE.fullmatch(typed):
            raise form_error(ReassignmentErrorCode.NO_WHOLE_NUMBER, example="3")
        factor = int(typed)
        if factor < 1:
            raise ValidationError(plan_requests.FACTOR_TOO_LOW(factor=factor))
        can, verb = self.takers, "is" if self.takers == 1 else "are"
        if factor > can > 0:
            sentence = plan_requests.FACTOR_TOO_HIGH(factor=factor, verb=verb, brokers=can, most=can)
            raise ValidationError(sentence)
        return factor

    def clean_eps(self) -> float:
        typed = self.cleaned_data["eps"].strip().removesuffix("%").strip()
        if not self.cleaned_data.get("disks") and not _PERCENT.fullmatch(typed):
            return EPS  # it says nothing while disks are left alone
        if not _PERCENT.fullmatch(typed) or not 1 <= float(typed) <= 100:
            raise form_error(ReassignmentErrorCode.EVENNESS_UNREADABLE)
        return round(float(typed) / 100, 4)

    def clean_topics(self) -> tuple[str, ...]:
        return names_in(self.cleaned_data["topics"])

    def clean_pattern(self) -> str:
        return str(self.cleaned_data["pattern"].strip())

    def clean_excluded(self) -> str:
        return str(self.cleaned_data["excluded"].strip())

    def clean(self) -> None:
        values = self.cleaned_data
        if self.rackless and self.mode != LEADERS and not values.get("ignore_racks"):
            names = "names" if len(self.rackless) == 1 else "name"
            brokers = f"{capital(broker_names(self.rackless))} {names}"
            if self.mode == REPAIR_RACKS:
                self.add_error(None, message_text(ReassignmentErrorCode.RACKS_NOT_KNOWN, brokers=brokers))
            else:
                self.add_error("ignore_racks", message_text(ReassignmentErrorCode.RACK_MISSING, brokers=brokers))
        chosen = values.get("topics", ()), values.get("pattern", ""), values.get("excluded", "")
        if any(chosen):
            try:
                counted(self.cluster, *chosen)
            except BadChoice as bad:
                self.add_error(bad.field, str(bad))

    def asked(self, before: Asked) -> Asked:
        values = dict(self.cleaned_data)
        del values["version"]
        if self.mode == BALANCE:
            values["eps"] = values["eps"] if values.pop("disks") else None
        return replace(before, **values)

    def in_words(self, values: Mapping[str, Any]) -> dict[str, str]:
        words = super().in_words(values)
        if self.mode == BALANCE:
            eps = values.get("eps")
            words["Disks within"] = f"{100 * eps:g} %" if isinstance(eps, float) else in_words(eps)
        return words

    def _with_role(self, role: str) -> tuple[int, ...]:
        """Brokers that were given it, by id. Raises ValidationError."""
        sent = [name.removeprefix("role-") for name in self.data if name.startswith("role-")]
        return broker_ids(",".join(one for one in sent if self.data.get(f"role-{one}") == role))


class ExplicitForm(WizardForm):
    """Kafka's JSON, pasted or as a file; with neither, what was brought before stays.

    An earlier plan that is finished may change factors as it was to change them then.
    """

    file = forms.FileField(label="File", required=False, allow_empty_file=True)
    text = forms.CharField(label="Kafka’s JSON", required=False, strip=False)
    change_rf = forms.BooleanField(label="Let the replication factor change", required=False)
    accept_fewer_racks = forms.BooleanField(label="Accept fewer racks", required=False)

    def __init__(self, *args: Any, before: Asked, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.before = before
        self.brought: Brought | None = None
        if before.mode == FINISH:
            del self.fields["change_rf"]

    def clean(self) -> None:
        file, text = self.cleaned_data.get("file"), self.cleaned_data.get("text", "")
        if file and text.strip() and self.data.get("text") != self.initial.get("text"):
            self.add_error("file", message_text(ReassignmentErrorCode.FILE_AND_TEXT))
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
            self.add_error("file", message_text(ReassignmentErrorCode.FILE_EMPTY))
        elif self.brought is None and not self.before.upload:
            self.add_error("text", message_text(ReassignmentErrorCode.NO_FILE))

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

    def asked(self, before: Asked) -> Asked:
        asked = replace(
            before,
            change_rf=self.cleaned_data.get("change_rf", False),
            accept_fewer_racks=self.cleaned_data["accept_fewer_racks"],
        )
        return replace(asked, upload=self.brought.sha256, name=self.brought.name) if self.brought else asked


def _refuse_unfit(choices: Sequence[BrokerChoice]) -> None:
    """Who is to be given replicas must be up. Raises ValidationError."""
    for choice in choices:
        if not choice.takes:
            why = "is away" if choice.gone else "is fenced"
            raise ValidationError(refused.BROKER_UNFIT(broker=choice.id, why=why, more=""))


def _typed(value: object) -> object:
    """As a field shows it."""
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
