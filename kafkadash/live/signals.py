"""Publication of more than refreshes: rows that changed, clusters that came or went, rights that changed."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.contrib.sessions.models import Session
from django.db import transaction
from django.db.models.signals import post_delete, post_save

from kafkadash.accounts.models import User
from kafkadash.clusters.models import Cluster, ClusterRole
from kafkadash.core.events import changed
from kafkadash.live.panels import BOARD
from kafkadash.live.publisher import publish_keys, publish_rights

# Columns of a user that signing in writes, and that say nothing about rights.
_ONLY_A_SIGN_IN = frozenset({"last_login"})
# Columns of a cluster that workers learn; the board shows none of them in another order.
_LEARNED = frozenset({"kafka_id", "mode"})


def connect() -> None:
    changed.connect(_rows_changed, dispatch_uid="live.changed")
    for signal in (post_save, post_delete):
        signal.connect(_cluster_changed, sender=Cluster, dispatch_uid=f"live.cluster.{id(signal)}")
        signal.connect(_role_changed, sender=ClusterRole, dispatch_uid=f"live.role.{id(signal)}")
        signal.connect(_user_changed, sender=User, dispatch_uid=f"live.user.{id(signal)}")
    post_delete.connect(_session_ended, sender=Session, dispatch_uid="live.session")


def _rows_changed(keys: frozenset[str], **_: Any) -> None:
    publish_keys(keys)


def _cluster_changed(update_fields: frozenset[str] | None = None, **_: Any) -> None:
    if not (update_fields and update_fields <= _LEARNED):
        transaction.on_commit(partial(publish_keys, [BOARD]))


def _role_changed(instance: ClusterRole, **_: Any) -> None:
    transaction.on_commit(partial(publish_rights, instance.user_id))


def _user_changed(instance: User, update_fields: frozenset[str] | None = None, **_: Any) -> None:
    if not (update_fields and update_fields <= _ONLY_A_SIGN_IN):
        transaction.on_commit(partial(publish_rights, instance.pk))


def _session_ended(instance: Session, **_: Any) -> None:
    """Signing out ends the row; watching ends with it. An anonymous session has no user to tell."""
    user_id = instance.get_decoded().get("_auth_user_id")
    if user_id is not None:
        transaction.on_commit(partial(publish_rights, int(user_id)))
