"""``manage.py rotate_secrets``: write all stored secrets anew with the first of FIELD_KEYS."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from kafkadash.accounts.errors import command_error
from kafkadash.clusters.errors import ClusterErrorCode
from kafkadash.clusters.secrets import SecretError, rotate_all


class Command(BaseCommand):
    help = (
        "Writes all stored secrets anew with the first key of FIELD_KEYS. To change the key: put the new one in front "
        "of the old in FIELD_KEYS, restart everything, run this, then take the old one away."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            rotated, unreadable = rotate_all()
        except SecretError as error:
            raise CommandError(str(error)) from None
        self.stdout.write(f"{rotated} secrets are now written with the first key.")
        if unreadable:
            raise command_error(ClusterErrorCode.FIT_NO_KEY, names=", ".join(unreadable))
