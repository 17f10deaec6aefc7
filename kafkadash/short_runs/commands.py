"""Base of commands that propose changes which are lists of items: a change request, never a request to Kafka."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any, NoReturn

from django.urls import reverse

from kafkadash.accounts.errors import ActionForbidden, command_error
from kafkadash.accounts.models import User
from kafkadash.changes import services
from kafkadash.changes.errors import ChangeRefused
from kafkadash.changes.models import ChangeRequest
from kafkadash.clusters.forms import CodedForm
from kafkadash.clusters.models import Cluster
from kafkadash.core.messages import CodedMessage, message_json
from kafkadash.monitoring.stored_commands import BAD, StoredFactsCommand, add_output_options
from kafkadash.short_runs.errors import ShortRunErrorCode
from kafkadash.short_runs.kinds import Items, items_of, short_kind
from kafkadash.short_runs.plans import create_planned_draft, plan_items, shorten_title

MOST_SHOWN = 100


class ItemCommand(StoredFactsCommand):
    """``propose`` plans items, submits them for approval, and prints the address of the change."""

    def propose(self, cluster: Cluster, kind: str, wanted: Mapping[str, Any], title: str, options: Any) -> None:
        """Raises CodedCommandError; a draft that cannot be submitted stays, and its address is printed before."""
        user = find_proposer(options["user"])
        title = options["title"] or shorten_title(title)
        try:
            made = plan_items(short_kind(kind), cluster, wanted)
            draft = create_planned_draft(cluster, user, made, wanted, title, options["reason"])
        except (ChangeRefused, ActionForbidden) as refused:
            raise command_error(refused.message, returncode=BAD) from refused
        items = items_of(draft)
        try:
            _check_confirmation(kind, items, options["confirm"])
            change = services.submit(draft, user, why=options["reason"], version=draft.version, digest=draft.digest)
        except (ChangeRefused, ActionForbidden) as refused:
            self._print_change(draft, items, refused.message, as_data=options["json"])
            if options["json"]:
                sys.exit(BAD)
            raise command_error(refused.message, returncode=BAD) from refused
        self._print_change(change, items, as_data=options["json"])

    def refuse_form(self, cluster: Cluster, form: CodedForm) -> NoReturn:
        """Print what is wrong with each field. Raises CodedCommandError."""
        for field, message in form.wrong():
            codes = f" ({', '.join(message.codes)})" if message.codes else ""
            self.stderr.write(f"{field.label if field else cluster.name}: {message.text}{codes}")
        raise command_error(ShortRunErrorCode.NOT_PROPOSED, returncode=BAD)

    def _print_change(
        self, change: ChangeRequest, items: Items, refused: CodedMessage | None = None, *, as_data: bool
    ) -> None:
        address = reverse("changes:request", args=[change.pk])
        if as_data:
            told: dict[str, Any] = {"change": change.pk, "state": change.state, "address": address}
            told["refused"] = message_json(refused) if refused else None
            listed = [{"item": item.subject, "content": item.content} for item in items]
            self.stdout.write(json.dumps({**told, "items": listed}, indent=2, ensure_ascii=False))
            return
        self.stdout.write(f"#{change.pk} {change.title}, {change.state}: {address}")
        kind = short_kind(change.kind)
        for item in items[:MOST_SHOWN]:
            words = kind.words(item, None)
            self.stdout.write(f"  {item.subject}: {' → '.join(filter(None, (words.before, words.after)))}")
        if len(items) > MOST_SHOWN:
            self.stdout.write(f"  … and {len(items) - MOST_SHOWN:,} more")


def add_proposal_options(*parsers: ArgumentParser) -> None:
    for parser in parsers:
        parser.add_argument("--user", required=True, metavar="NAME", help="author of the change, an operator")
        parser.add_argument("--reason", required=True, help="reason of the change, shown to approvers")
        parser.add_argument("--title", default="", help="title of the change; default: made from its scope")
        parser.add_argument("--confirm", default="", help="text to type where a change has no rollback")
        add_output_options(parser)


def find_proposer(name: str) -> User:
    """Raises CodedCommandError where no open account has the name; whether it may propose, the draft checks."""
    user = User.objects.filter(username=name, is_active=True).first()
    if user is None:
        raise command_error(ShortRunErrorCode.NO_PROPOSER, name=name, returncode=BAD)
    return user


def _check_confirmation(kind: str, items: Items, typed: str) -> None:
    """Raises ChangeRefused."""
    confirm = short_kind(kind).confirm
    if confirm is not None and typed != (expected := confirm(items)):
        raise ChangeRefused(ShortRunErrorCode.NOT_CONFIRMED, expected=expected)
