"""``manage.py user``: users and their roles, from the command line."""

from __future__ import annotations

import secrets
from argparse import ArgumentParser
from datetime import UTC, datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction
from django.utils import timezone
from django.utils.dateparse import parse_date, parse_datetime

from kafkadash.accounts.errors import command_error
from kafkadash.accounts.models import User
from kafkadash.accounts.services import COMMAND_LINE, AccountRefused, create_user, set_active, set_password
from kafkadash.clusters.errors import ClusterErrorCode
from kafkadash.clusters.models import Cluster, Role
from kafkadash.clusters.passwords import NoSecret, read_secret
from kafkadash.clusters.services import ClusterRefused, give_role, remove_role


class Command(BaseCommand):
    help = "Create users, grant and revoke roles, set passwords, close accounts."

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        create = actions.add_parser("create", help="create a user")
        create.add_argument("name")
        create.add_argument("--superuser", action="store_true", help="all permissions on all clusters")
        _add_role(create, required=False)
        _add_password(create)
        give = actions.add_parser("give", help="grant a role")
        give.add_argument("name")
        _add_role(give, required=True)
        take = actions.add_parser("take", help="revoke a role")
        take.add_argument("name")
        take.add_argument("--role", choices=Role.values, required=True)
        take.add_argument("--cluster", help="slug of the cluster; default: the role on all clusters")
        password = actions.add_parser("password", help="set a password and end all sessions of the user")
        password.add_argument("name")
        _add_password(password)
        for name, text in (("close", "close an account: sign-in is refused"), ("open", "reopen an account")):
            actions.add_parser(name, help=text).add_argument("name")
        actions.add_parser("list", help="list users with their roles")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            getattr(self, f"_{options['action']}")(options)
        except (AccountRefused, NoSecret, ClusterRefused) as error:
            raise CommandError(str(error)) from None

    def _create(self, options: dict[str, Any]) -> None:
        password, generated = _password(options)
        cluster, expires_at = _cluster(options["cluster"]), _parse_expiry(options["expires"])
        with transaction.atomic():
            user = create_user(COMMAND_LINE, options["name"], password, superuser=options["superuser"])
            if options["role"]:
                give_role(COMMAND_LINE, user, Role(options["role"]), cluster=cluster, expires_at=expires_at)
        self.stdout.write(f"User {user.username} created.")
        self._show(password if generated else "")
        if not options["role"] and not options["superuser"]:
            self.stdout.write(f"No role yet. Grant one: manage.py user give {user.username} --role viewer")

    def _give(self, options: dict[str, Any]) -> None:
        user, cluster = _user(options["name"]), _cluster(options["cluster"])
        role = give_role(
            COMMAND_LINE, user, Role(options["role"]), cluster=cluster, expires_at=_parse_expiry(options["expires"])
        )
        until = f" until {role.expires_at:%Y-%m-%d %H:%M} UTC" if role.expires_at else ""
        self.stdout.write(f"{user.username} has the role {options['role']} {_describe_scope(cluster)}{until}.")

    def _take(self, options: dict[str, Any]) -> None:
        user, cluster = _user(options["name"]), _cluster(options["cluster"])
        if not remove_role(COMMAND_LINE, user, Role(options["role"]), cluster=cluster):
            raise command_error(
                ClusterErrorCode.NO_ROLE_TO_TAKE,
                name=user.username,
                role=options["role"],
                where=_describe_scope(cluster),
            )
        self.stdout.write(f"Revoked {options['role']} {_describe_scope(cluster)} from {user.username}.")

    def _password(self, options: dict[str, Any]) -> None:
        user = _user(options["name"])
        password, generated = _password(options)
        set_password(COMMAND_LINE, user, password)
        self.stdout.write(f"Password of {user.username} changed. All sessions of the user ended.")
        self._show(password if generated else "")

    def _close(self, options: dict[str, Any]) -> None:
        changed = set_active(COMMAND_LINE, _user(options["name"]), active=False)
        self.stdout.write(f"{options['name']} is closed." if changed else f"{options['name']} was already closed.")

    def _open(self, options: dict[str, Any]) -> None:
        changed = set_active(COMMAND_LINE, _user(options["name"]), active=True)
        self.stdout.write(f"{options['name']} is open." if changed else f"{options['name']} was already open.")

    def _list(self, options: dict[str, Any]) -> None:
        for user in User.objects.order_by("username").prefetch_related("cluster_roles__cluster"):
            roles = [
                f"{role.role} {_describe_scope(role.cluster)}{_run_out(role.expires_at)}"
                for role in user.cluster_roles.all()
            ]
            if user.is_superuser:
                roles.insert(0, "superuser")
            state = "" if user.is_active else " (closed)"
            self.stdout.write(f"{user.username}{state}: {', '.join(sorted(roles)) or 'no role'}")

    def _show(self, generated: str) -> None:
        if generated:
            self.stdout.write(f"Password (shown once): {generated}")


def _add_role(parser: ArgumentParser, *, required: bool) -> None:
    parser.add_argument("--role", choices=Role.values, required=required)
    parser.add_argument("--cluster", help="slug of the cluster, as in its page addresses; default: all clusters")
    parser.add_argument("--expires", help="end of the role in UTC: 2027-01-31 or 2027-01-31T18:00")


def _add_password(parser: ArgumentParser) -> None:
    parser.add_argument("--password-file", metavar="FILE", help='"-" for standard input; default: a generated password')


def _password(options: dict[str, Any]) -> tuple[str, bool]:
    if options["password_file"]:
        return read_secret(options["password_file"], "password"), False
    return secrets.token_urlsafe(15), True


def _user(name: str) -> User:
    user = User.objects.filter(username=name).first()
    if user is None:
        raise command_error(ClusterErrorCode.NO_SUCH_USER, name=name)
    return user


def _cluster(slug: str | None) -> Cluster | None:
    if not slug:
        return None
    cluster = Cluster.objects.filter(slug=slug).first()
    if cluster is None:
        known = ", ".join(Cluster.objects.values_list("slug", flat=True)) or "none"
        raise command_error(ClusterErrorCode.CLUSTER_UNKNOWN, slug=slug, known=known)
    return cluster


def _parse_expiry(text: str | None) -> datetime | None:
    if not text:
        return None
    try:
        day = parse_date(text)
        moment = datetime(day.year, day.month, day.day, tzinfo=UTC) if day else parse_datetime(text)
    except ValueError:
        moment = None
    if moment is None:
        raise command_error(ClusterErrorCode.DATE_UNREADABLE, text=text)
    if timezone.is_naive(moment):
        moment = timezone.make_aware(moment)
    if moment <= timezone.now():
        raise command_error(ClusterErrorCode.DATE_GONE_BY, text=text)
    return moment


def _describe_scope(cluster: Cluster | None) -> str:
    return f"on {cluster.slug}" if cluster else "on all clusters"


def _run_out(expires_at: datetime | None) -> str:
    if expires_at is None:
        return ""
    return f" (expired {expires_at:%Y-%m-%d})" if expires_at <= timezone.now() else f" (until {expires_at:%Y-%m-%d})"
