"""``manage.py cluster``: register clusters, list them and their roles, test connections."""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from kafkadash.accounts.errors import command_error, with_code
from kafkadash.accounts.models import User
from kafkadash.accounts.services import COMMAND_LINE
from kafkadash.clusters.errors import ClusterErrorCode
from kafkadash.clusters.models import Cluster, ClusterRole, SecurityProtocol
from kafkadash.clusters.passwords import NoSecret, read_secret
from kafkadash.clusters.secrets import SecretError
from kafkadash.clusters.services import (
    ClusterRefused,
    register_cluster,
    set_enabled,
    update_connection,
)
from kafkadash.core.messages import as_message, unpack_value
from kafkadash.jobs.connection_test import KIND as CONNECTION_TEST
from kafkadash.jobs.models import Job, JobState
from kafkadash.jobs.runner import enqueue, request_cancel
from kafkadash.kafka.connections import SASL_MECHANISMS
from kafkadash.ops.errors import OperationErrorCode

POLL_S = 0.2
WAIT_S = 60.0


class Command(BaseCommand):
    help = "Register, list, enable and disable clusters, test connections, list roles."

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        register = actions.add_parser("register", help="register a cluster")
        register.add_argument("name")
        register.add_argument("--bootstrap", required=True, metavar="HOST:PORT,…")
        register.add_argument("--read-only", action="store_true", help="never change this cluster")
        _add_connection(register)
        connect = actions.add_parser("connect", help="change addresses or secrets of a cluster")
        connect.add_argument("cluster")
        connect.add_argument("--bootstrap", metavar="HOST:PORT,…")
        _add_connection(connect)
        test = actions.add_parser("test", help="test the connection from a worker and print the result")
        test.add_argument("cluster")
        test.add_argument(
            "--wait", type=float, default=WAIT_S, metavar="SECONDS", help=f"time limit, default {WAIT_S:g}"
        )
        roles = actions.add_parser("roles", help="list roles on a cluster")
        roles.add_argument("cluster")
        for name, text in (("enable", "start collection"), ("disable", "stop collection; collected data stays")):
            actions.add_parser(name, help=text).add_argument("cluster")
        actions.add_parser("list", help="list registered clusters")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            getattr(self, f"_{options['action']}")(options)
        except ClusterRefused as error:
            told = (as_message(each) for several in error.messages.values() for each in several)
            raise CommandError("\n".join(map(with_code, told))) from None
        except (NoSecret, SecretError) as error:
            raise command_error(error.message) from None

    def _register(self, options: dict[str, Any]) -> None:
        cluster = register_cluster(
            COMMAND_LINE, options["name"], options["bootstrap"], read_only=options["read_only"], **_connection(options)
        )
        self.stdout.write(f"{cluster.name} registered. Test the connection: manage.py cluster test {cluster.slug}")

    def _connect(self, options: dict[str, Any]) -> None:
        values = _connection(options)
        if options["bootstrap"] is not None:
            values["bootstrap_servers"] = options["bootstrap"]
        if not values:
            raise command_error(OperationErrorCode.NOTHING_TO_CHANGE)
        cluster = update_connection(COMMAND_LINE, _cluster(options["cluster"]), **values)
        self.stdout.write(f"{cluster.name} uses connection version {cluster.connection_version}.")

    def _enable(self, options: dict[str, Any]) -> None:
        changed = set_enabled(COMMAND_LINE, _cluster(options["cluster"]), enabled=True)
        self.stdout.write(f"{options['cluster']} is {'now' if changed else 'already'} enabled.")

    def _disable(self, options: dict[str, Any]) -> None:
        changed = set_enabled(COMMAND_LINE, _cluster(options["cluster"]), enabled=False)
        self.stdout.write(f"{options['cluster']} is {'now' if changed else 'already'} disabled.")

    def _list(self, options: dict[str, Any]) -> None:
        clusters = Cluster.objects.all()
        if not clusters:
            self.stdout.write("No clusters yet. Register one: manage.py cluster register NAME --bootstrap HOST:PORT")
        for cluster in clusters:
            words = [cluster.get_mode_display(), cluster.security_protocol]
            words += ["read-only"] if cluster.read_only else []
            words += [] if cluster.enabled else ["disabled"]
            known = cluster.kafka_id or "not contacted yet"
            self.stdout.write(f"{cluster.slug}: {cluster.bootstrap_servers} ({', '.join(words)}; {known})")

    def _roles(self, options: dict[str, Any]) -> None:
        cluster = _cluster(options["cluster"])
        held = ClusterRole.objects.filter(cluster=cluster) | ClusterRole.objects.filter(cluster__isnull=True)
        for role in held.select_related("user").order_by("user__username", "role"):
            notes = ["on all clusters"] if role.cluster_id is None else []
            if role.expires_at:
                ended = role.expires_at <= timezone.now()
                notes.append(f"{'expired' if ended else 'until'} {role.expires_at:%Y-%m-%d %H:%M} UTC")
            notes += [] if role.user.is_active else ["account closed"]
            self.stdout.write(f"{role.user.username}: {role.role}" + (f" ({', '.join(notes)})" if notes else ""))
        for user in User.objects.filter(is_superuser=True).order_by("username"):
            self.stdout.write(f"{user.username}: superuser" + ("" if user.is_active else " (account closed)"))

    def _test(self, options: dict[str, Any]) -> None:
        job = enqueue(CONNECTION_TEST, cluster=_cluster(options["cluster"]))
        try:
            self._wait(job, options["wait"])
        except KeyboardInterrupt:
            request_cancel(job.pk)
            self.stderr.write("Cancelled.")
            sys.exit(130)
        if job.state == JobState.DONE:
            self._report(job.result or {})
        elif job.error is not None:
            raise command_error(job.error)
        elif job.state == JobState.CANCELLED:
            raise command_error(OperationErrorCode.TEST_CANCELLED)

    def _wait(self, job: Job, seconds: float) -> None:
        """Until the job has ended. Raises CommandError, and cancels the job, when that takes longer."""
        end = time.monotonic() + seconds
        told = ""
        while job.state in (JobState.QUEUED, JobState.RUNNING):
            if time.monotonic() > end:
                was_queued = job.state == JobState.QUEUED
                request_cancel(job.pk)
                code = OperationErrorCode.TEST_NOT_TAKEN if was_queued else OperationErrorCode.TEST_TOO_SLOW
                raise command_error(code, seconds=seconds)
            time.sleep(POLL_S)
            job.refresh_from_db()
            if job.progress_note and job.progress_note != told:
                told = job.progress_note
                self.stdout.write(f"… {told}")

    def _report(self, result: dict[str, Any]) -> None:
        self.stdout.write(f"Cluster ID {result['kafka_id']}, mode {result['mode']}")
        for broker in result["brokers"]:
            rack = "no rack" if broker["rack"] is None else f"rack {broker['rack']}"
            fenced = ", fenced" if broker["fenced"] else ""
            self.stdout.write(f"  broker {broker['id']}  {broker['host']}:{broker['port']}  {rack}{fenced}")
        if result["controller"] is not None:
            voters = ", ".join(str(voter) for voter in result["voters"])
            self.stdout.write(f"active controller {result['controller']}, voters {voters}")
        for problem in result["problems"]:
            self.stdout.write(f"! {unpack_value(problem)}")
        if result["problems"]:
            sys.exit(2)


def _add_connection(parser: ArgumentParser) -> None:
    parser.add_argument("--controllers", metavar="HOST:PORT,…", help="controller addresses, optional")
    parser.add_argument("--security", choices=SecurityProtocol.values, help="default PLAINTEXT")
    parser.add_argument("--sasl-mechanism", metavar="NAME", help=", ".join(SASL_MECHANISMS))
    parser.add_argument("--sasl-username", help="user name, or client ID for OAUTHBEARER")
    parser.add_argument(
        "--sasl-password-file",
        metavar="FILE",
        help='password or client secret; "-" for standard input, env:NAME for an environment variable',
    )
    parser.add_argument("--oauth-endpoint", metavar="URL", help="token endpoint, for OAUTHBEARER")
    parser.add_argument("--oauth-scope", metavar="SCOPE")
    parser.add_argument("--oauth-extensions", metavar="NAME=VALUE,…", help="SASL extensions")
    parser.add_argument("--ca-file", metavar="FILE", help="trusted CA certificates, PEM; default: those of the system")
    parser.add_argument("--certificate-file", metavar="FILE", help="client certificate, PEM")
    parser.add_argument("--key-file", metavar="FILE", help="private key of the client certificate, PEM")
    parser.add_argument("--zookeeper", metavar="HOST:PORT,…/PATH", help="zookeeper.connect of brokers without KRaft")
    parser.add_argument("--zookeeper-user", metavar="USER", help="user of ZooKeeper's digest scheme")
    parser.add_argument("--zookeeper-password-file", metavar="FILE", help="its password, as of --sasl-password-file")
    parser.add_argument("--zookeeper-tls", action="store_true", help="TLS to ZooKeeper, with the same certificates")
    parser.add_argument("--any-hostname", action="store_true", help="do not verify host names in broker certificates")


def _connection(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options given on the command line, with the content of the files they name. Raises NoSecret."""
    plain = {
        "controller_servers": options["controllers"],
        "security_protocol": options["security"],
        "sasl_mechanism": options["sasl_mechanism"],
        "sasl_username": options["sasl_username"],
        "oauth_endpoint": options["oauth_endpoint"],
        "oauth_scope": options["oauth_scope"],
        "oauth_extensions": options["oauth_extensions"],
        "zookeeper": options["zookeeper"],
        "zookeeper_username": options["zookeeper_user"],
    }
    files = {
        "sasl_password": ("sasl_password_file", "SASL password"),
        "ca_pem": ("ca_file", "CA certificates"),
        "certificate_pem": ("certificate_file", "client certificate"),
        "key_pem": ("key_file", "private key"),
        "zookeeper_password": ("zookeeper_password_file", "ZooKeeper password"),
    }
    values = {name: value for name, value in plain.items() if value is not None}
    values |= {name: read_secret(options[option], what) for name, (option, what) in files.items() if options[option]}
    if options["any_hostname"]:
        values["check_hostname"] = False
    if options["zookeeper_tls"]:
        values["zookeeper_tls"] = True
    return values


def _cluster(slug: str) -> Cluster:
    cluster = Cluster.objects.filter(slug=slug).first()
    if cluster is None:
        known = ", ".join(Cluster.objects.values_list("slug", flat=True)) or "none"
        raise command_error(ClusterErrorCode.CLUSTER_UNKNOWN, slug=slug, known=known)
    return cluster
