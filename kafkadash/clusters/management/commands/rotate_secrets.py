"""``manage.py rotate_secrets``: encrypt all stored secrets again with the first of FIELD_KEYS."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from kafkadash.accounts.errors import command_error
from kafkadash.clusters.errors import ClusterErrorCode
from kafkadash.clusters.secrets import SecretError, rotate_all


class Command(BaseCommand):
    help = (
        "Encrypt all stored secrets again with the first key in FIELD_KEYS. To change the key: add the new key before "
        "the old one, restart all processes, run this command, then remove the old key."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            rotated, unreadable = rotate_all()
        except SecretError as error:
            raise CommandError(str(error)) from None
        self.stdout.write(f"{rotated} secrets encrypted with the first key.")
        if unreadable:
            raise command_error(ClusterErrorCode.FIT_NO_KEY, names=", ".join(unreadable))
