"""All changes to registered clusters and roles, each with its audit event in one transaction.

``read_addresses`` parses bootstrap addresses as people type them.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings as conf
from django.core.exceptions import ValidationError
from django.db import IntegrityError, models, transaction
from django.db.models import F, Q
from django.db.models.functions import Least, Now
from django.http import HttpRequest
from django.utils import timezone
from django.utils.text import slugify

from kafkadash.accounts.models import User
from kafkadash.accounts.services import record
from kafkadash.clusters.errors import ClusterErrorCode
from kafkadash.clusters.models import Cluster, ClusterMode, ClusterRole, Role, SecurityProtocol
from kafkadash.clusters.secrets import EncryptedTextField, SecretUse
from kafkadash.core.errors import UserError
from kafkadash.core.failures import FailureKind
from kafkadash.core.messages import CodedMessage, coded
from kafkadash.kafka.api import AuthenticationFailed, ConnectionSecurity, NotSupported
from kafkadash.kafka.connections import KERBEROS, SASL_MECHANISMS, ssl_context
from kafkadash.kafka.errors import KafkaErrorCode
from kafkadash.kafka.tokens import OAUTHBEARER, check_endpoint, read_extensions

_NAME = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)(\.(?!-)[A-Za-z0-9_-]{1,63}(?<!-))*\.?")


class BadAddresses(Exception):
    """``messages`` has one for each address that cannot be used."""

    def __init__(self, messages: Sequence[CodedMessage]) -> None:
        super().__init__(" ".join(map(str, messages)))
        self.messages = messages


def read_addresses(text: str) -> list[str]:
    """``host:port`` items, normalized, from text separated by commas or white space.

    Raises BadAddresses with a message for each bad one, or one message when there is none at all.
    """
    good: list[str] = []
    bad: list[CodedMessage] = []
    for item in re.split(r"[,\s]+", text.strip()):
        if not item:
            continue
        fault = _find_fault(item)
        if fault:
            bad.append(fault)
        elif item in good:
            bad.append(coded(ClusterErrorCode.ADDRESS_TWICE, item=item))
        else:
            good.append(item)
    if not good and not bad:
        bad.append(coded(ClusterErrorCode.NO_ADDRESS))
    if bad:
        raise BadAddresses(bad)
    return good


def _find_fault(item: str) -> CodedMessage | None:
    """Return what is wrong with an address; None when nothing is."""
    if "://" in item:
        return coded(ClusterErrorCode.PROTOCOL_IN_FRONT, item=item)
    host, colon, port = item.rpartition(":")
    if item.startswith("[") and not item.endswith("]") and "]:" not in item:
        return coded(ClusterErrorCode.BRACKETS_WRONG, item=item)
    if item.count(":") > 1 and not item.startswith("["):
        return coded(ClusterErrorCode.BRACKETS_MISSING, item=item)
    if not colon or not host or item.endswith("]"):
        return coded(ClusterErrorCode.PORT_MISSING, item=item)
    if not port.isascii() or not port.isdigit() or not 1 <= int(port) <= 65535:
        return coded(ClusterErrorCode.PORT_WRONG, item=item, port=port or "(empty)")
    return _host_fault(item, host)


def _host_fault(item: str, host: str) -> CodedMessage | None:
    if host.startswith("["):
        try:
            ipaddress.IPv6Address(host[1:-1])
        except ValueError:
            return coded(ClusterErrorCode.IPV6_WRONG, item=item)
        return None
    if len(host) > 253 or not _NAME.fullmatch(host):
        return coded(ClusterErrorCode.HOST_WRONG, item=item)
    if re.fullmatch(r"[0-9.]+", host):
        try:
            ipaddress.IPv4Address(host)
        except ValueError:
            return coded(ClusterErrorCode.IPV4_WRONG, item=item)
    return None


_CHROOT = re.compile(r"(/(?!\.{1,2}(/|$))[^\s/,\x00-\x1f\x7f-\x9f]+)+")
_LONGEST_CHROOT = 255


def read_zookeeper(typed: str) -> str:
    """A ZooKeeper address as zookeeper.connect has it, normalized: ``host:port,host:port/path``.

    Raises BadAddresses.
    """
    servers, slash, path = typed.strip().partition("/")
    chroot = f"{slash}{path}".rstrip("/")
    if "://" in typed:
        raise BadAddresses([coded(ClusterErrorCode.PROTOCOL_IN_FRONT, item=typed[:60])])
    bad: list[CodedMessage] = []
    good: list[str] = []
    try:
        good = read_addresses(servers)
    except BadAddresses as error:
        bad += error.messages
    if chroot and (len(chroot) > _LONGEST_CHROOT or not _CHROOT.fullmatch(chroot)):
        bad.append(coded(ClusterErrorCode.CHROOT_WRONG, path=chroot[:60]))
    if bad:
        raise BadAddresses(bad)
    return ",".join(good) + chroot


# What a person may enter about how to reach a cluster; everything else about it is learned.
CONNECTION_FIELDS = (
    "bootstrap_servers",
    "controller_servers",
    "security_protocol",
    "sasl_mechanism",
    "sasl_username",
    "sasl_password",
    "ca_pem",
    "certificate_pem",
    "key_pem",
    "check_hostname",
    "oauth_endpoint",
    "oauth_scope",
    "oauth_extensions",
    "zookeeper",
    "zookeeper_username",
    "zookeeper_password",
    "zookeeper_tls",
)


class ClusterRefused(Exception):
    """``messages`` say what was wrong, field by field ('' for the whole)."""

    def __init__(self, messages: Mapping[str, Sequence[CodedMessage | str]]) -> None:
        super().__init__(" ".join(str(message) for several in messages.values() for message in several))
        self.messages = dict(messages)


class IdentityChanged(UserError):
    """Behind a cluster's addresses answers another Kafka cluster than before; ``str()`` explains it."""


class RegisteredTwice(IdentityChanged):
    """Behind a cluster's addresses answers a Kafka cluster that is registered under another name as well."""

    kind = FailureKind.REGISTERED_TWICE


def register_cluster(
    actor: User | str,
    name: str,
    bootstrap_servers: str,
    *,
    request: HttpRequest | None = None,
    read_only: bool = False,
    **connection: Any,
) -> Cluster:
    """A new cluster under this name; ``connection`` is any of CONNECTION_FIELDS. Kafka is not asked here.

    Raises Refused with a sentence for each thing that is wrong.
    """
    name = " ".join(name.split())
    cluster = Cluster(name=name, slug=slugify(name), read_only=read_only)
    _assign(cluster, {"bootstrap_servers": bootstrap_servers, **connection})
    _check(cluster)
    try:
        with transaction.atomic():
            cluster.save(force_insert=True)
            after = {"name": name, "read_only": read_only, **shown_values(cluster, CONNECTION_FIELDS)}
            record(actor, "cluster.registered", cluster, cluster=cluster.slug, after=after, request=request)
    except IntegrityError as error:  # somebody else took the name after the check
        raise ClusterRefused({"name": [coded(ClusterErrorCode.CLUSTER_NAME_JUST_TAKEN, name=name)]}) from error
    return cluster


def tried_connection(cluster: Cluster | None, values: Mapping[str, Any]) -> Cluster:
    """A cluster as it would be with these parts of its connection, not saved: to try them first.

    What is not in ``values`` is as it is stored. Raises Refused with a sentence for each thing that is wrong, and
    where a stored secret would be used in another way than it was entered for.
    """
    tried = Cluster(name=cluster.name if cluster else "not registered yet", slug="tried")
    before: dict[str, Any] = {}
    if cluster is not None:
        before = {name: cluster.__dict__[name] for name in CONNECTION_FIELDS}
        tried.pk, tried.slug, tried.kafka_id = cluster.pk, cluster.slug, cluster.kafka_id
        for name in CONNECTION_FIELDS:
            setattr(tried, name, before[name])
    _assign(tried, values)
    _check(tried, named=cluster is not None)
    if cluster is not None:
        _keep_secrets_in_place(before, tried)
    return tried


def update_connection(
    actor: User | str, cluster: Cluster, *, request: HttpRequest | None = None, **connection: Any
) -> Cluster:
    """Change addresses or secrets; the next question to Kafka uses them, in every process. Nothing changed: no event.

    Raises Refused with a sentence for each thing that is wrong, and where a stored secret would be used in another way
    than it was entered for.
    """
    with transaction.atomic():
        current = Cluster.objects.select_for_update(no_key=True).get(pk=cluster.pk)
        before = {name: current.__dict__[name] for name in CONNECTION_FIELDS}
        shown_before = shown_values(current, CONNECTION_FIELDS)
        _assign(current, connection)
        _check(current)
        _keep_secrets_in_place(before, current)
        changed = [name for name in CONNECTION_FIELDS if current.__dict__[name] != before[name]]
        if changed:
            current.connection_version = F("connection_version") + 1
            current.save(update_fields=[*changed, "connection_version"])
            # Collectors that wait because the old settings were refused try the new ones at once.
            _try_at_once(current)
            record(
                actor,
                "cluster.connection_changed",
                current,
                cluster=current.slug,
                before={name: shown_before[name] for name in changed},
                after=shown_values(current, changed),
                request=request,
            )
            current = Cluster.objects.get(pk=current.pk)
    return current


def set_read_only(actor: User | str, cluster: Cluster, read_only: bool, *, request: HttpRequest | None = None) -> bool:
    """Set whether kafkadash may ever change anything in this cluster. Returns whether that is new.

    Raises Refused where it may not, because the same Kafka cluster is registered under another name.
    """
    with transaction.atomic():
        current = Cluster.objects.select_for_update(no_key=True).get(pk=cluster.pk)
        if not read_only and current.same_as is not None:
            raise ClusterRefused({"read_only": [double_message(current, current.same_as)]})
        changed = Cluster.objects.filter(pk=cluster.pk, read_only=not read_only).update(read_only=read_only)
        if changed:
            before, after = {"read_only": not read_only}, {"read_only": read_only}
            record(
                actor,
                "cluster.read_only_changed",
                cluster,
                cluster=cluster.slug,
                before=before,
                after=after,
                request=request,
            )
    return bool(changed)


def set_enabled(actor: User | str, cluster: Cluster, enabled: bool, *, request: HttpRequest | None = None) -> bool:
    """Switch collection on or off; what was collected stays. Returns whether anything changed."""
    with transaction.atomic():
        changed = Cluster.objects.filter(pk=cluster.pk, enabled=not enabled).update(enabled=enabled)
        if changed:
            if enabled:
                _try_at_once(cluster)
            verb = "cluster.enabled" if enabled else "cluster.disabled"
            record(actor, verb, cluster, cluster=cluster.slug, request=request)
    return bool(changed)


def _try_at_once(cluster: Cluster) -> None:
    """Collectors that wait, or gave up, because the credentials were refused, begin again."""
    cluster.collector_runs.update(next_at=Least(F("next_at"), Now()), refusals=0)


def first_registered(cluster: Cluster, kafka_id: str) -> Cluster | None:
    """Another cluster that this Kafka cluster is registered as; None where this one was the first, or is the only one.

    Two of them would change the same Kafka cluster without knowing of each other's runs and throttles.
    """
    others = Cluster.objects.filter(kafka_id=kafka_id).exclude(pk=cluster.pk)
    if cluster.kafka_id and cluster.pk is not None:
        others = others.filter(pk__lt=cluster.pk)
    return others.order_by("pk").first()


def remember_double(actor: User | str, cluster: Cluster, first: Cluster | None) -> None:
    """Keep which cluster is registered for the same Kafka cluster, and make this one read-only; None: there is none."""
    with transaction.atomic():
        Cluster.objects.filter(pk=cluster.pk).update(same_as=first)
        if first is not None:
            set_read_only(actor, cluster, read_only=True)


def double_message(cluster: Cluster, first: Cluster) -> CodedMessage:
    return coded(ClusterErrorCode.SAME_CLUSTER, cluster=cluster.name, other=first.name)


def check_identity(cluster: Cluster, kafka_id: str) -> None:
    """Raises IdentityChanged when another Kafka cluster answers than before: their figures must not be mixed.

    Raises RegisteredTwice where the one that answers is registered under another name.
    """
    if cluster.kafka_id and cluster.kafka_id != kafka_id:
        raise IdentityChanged(
            ClusterErrorCode.IDENTITY_CHANGED, cluster=cluster.name, answered=kafka_id, expected=cluster.kafka_id
        )
    first = first_registered(cluster, kafka_id)
    if first is not None:
        raise RegisteredTwice(double_message(cluster, first))


def learn_identity(
    actor: User | str, cluster_id: int, *, kafka_id: str, mode: ClusterMode = ClusterMode.UNKNOWN
) -> None:
    """Keep Kafka's own cluster id and how it keeps its metadata; call it inside the transaction that stores the answer.

    The id is kept at the first contact; the mode may change, as clusters move from ZooKeeper to KRaft. Raises
    IdentityChanged as ``check_identity`` does.
    """
    with transaction.atomic():
        cluster = Cluster.objects.select_for_update(no_key=True).get(pk=cluster_id)
        check_identity(cluster, kafka_id)
        before = {"kafka_id": cluster.kafka_id, "mode": cluster.mode}
        after = {"kafka_id": kafka_id, "mode": mode if mode != ClusterMode.UNKNOWN else cluster.mode}
        if before != after:
            Cluster.objects.filter(pk=cluster_id).update(**after)
            record(actor, "cluster.identified", cluster, cluster=cluster.slug, before=before, after=after)


def give_role(
    actor: User | str,
    user: User,
    role: Role,
    *,
    cluster: Cluster | None = None,
    expires_at: datetime | None = None,
    request: HttpRequest | None = None,
) -> ClusterRole:
    """A role on that cluster, or on all where none is named; given again, it gets the new expiry.

    Given by a person, nothing is approved or started by it for ``RIGHTS_WAIT_HOURS``: others can see it before. Given
    on the server, where ``actor`` is a text, it counts at once.

    Raises Refused when the expiry would leave nobody who may give roles there, and for a role for oneself: whoever
    administers a cluster could be both persons that a change needs.
    """
    if isinstance(actor, User) and actor.pk == user.pk:
        raise ClusterRefused({"user": [coded(ClusterErrorCode.OWN_ROLE)]})
    with transaction.atomic():
        if expires_at is not None:
            _keep_an_admin(user, role, cluster, "expires_at")
        held = ClusterRole.objects.select_for_update().filter(user=user, role=role, cluster=cluster).first()
        before = _role_facts(held) if held else None
        given, _ = ClusterRole.objects.update_or_create(
            user=user,
            role=role,
            cluster=cluster,
            defaults={"expires_at": expires_at, **_given_by(actor, held, expires_at, timezone.now())},
        )
        given.refresh_from_db(fields=["counts_from"])
        after = _role_facts(given)
        if before != after:
            slug = cluster.slug if cluster else ""
            record(actor, "role.given", user, cluster=slug, before=before, after=after, request=request)
    return given


def _given_by(actor: User | str, held: ClusterRole | None, until: datetime | None, now: datetime) -> dict[str, Any]:
    """Return giver and begin of a role. Both stay where a role that is held now does not last longer."""
    giver = actor if isinstance(actor, User) else None
    if held is None or (held.expires_at is not None and held.expires_at <= now):
        waits = timedelta(hours=conf.RIGHTS_WAIT_HOURS if giver else 0)
        return {"given_by": giver, "counts_from": Now() + waits}
    if giver and (held.expires_at is None or (until is not None and until <= held.expires_at)):
        giver = held.given_by
    at_once = not isinstance(actor, User) and held.counts_from > now
    return {"given_by": giver, "counts_from": Now() if at_once else held.counts_from}


def remove_role(
    actor: User | str,
    user: User,
    role: Role,
    *,
    cluster: Cluster | None = None,
    request: HttpRequest | None = None,
) -> bool:
    """Take a role away that was given on exactly this cluster (or on all). Returns whether there was one.

    Raises Refused when nobody would be left who may give roles there.
    """
    with transaction.atomic():
        _keep_an_admin(user, role, cluster, "")
        held = ClusterRole.objects.select_for_update().filter(user=user, role=role, cluster=cluster).first()
        if held is None:
            return False
        before = _role_facts(held)
        held.delete()
        slug = cluster.slug if cluster else ""
        record(actor, "role.removed", user, cluster=slug, before=before, request=request)
    return True


def _keep_an_admin(user: User, role: Role, cluster: Cluster | None, field: str) -> None:
    """Raises Refused when this role is what somebody has to have: the last one that administers this cluster (or all).

    Locks the roles of administrators, so that two of them cannot take each other's away at the same moment.
    """
    if role != Role.ADMIN:
        return
    where = Q(cluster=None) if cluster is None else Q(cluster=None) | Q(cluster=cluster)
    admins = list(ClusterRole.objects.select_for_update().filter(where, role=Role.ADMIN).order_by("pk"))
    own = next((r for r in admins if r.user_id == user.pk and r.cluster_id == (cluster and cluster.pk)), None)
    if own is None:
        return
    lasting = [r.user_id for r in admins if r is not own and r.expires_at is None]
    if User.objects.filter(Q(pk__in=lasting) | Q(is_superuser=True), is_active=True).exists():
        return
    name, what = user.get_username(), f"of {cluster.name}" if cluster else "of all clusters"
    raise ClusterRefused({field: [coded(ClusterErrorCode.LAST_ADMINISTRATOR, name=name, of=what)]})


def _assign(cluster: Cluster, values: Mapping[str, Any]) -> None:
    unknown = sorted(values.keys() - set(CONNECTION_FIELDS))
    if unknown:
        raise TypeError(f"Not a part of a connection: {', '.join(unknown)}")
    for name, value in values.items():
        setattr(cluster, name, value.strip() if isinstance(value, str) and "password" not in name else value)


def _check(cluster: Cluster, *, named: bool = True) -> None:
    """Raises Refused; normalizes the addresses."""
    wrong: dict[str, Sequence[CodedMessage | str]] = {}
    try:
        cluster.bootstrap_servers = ",".join(read_addresses(cluster.bootstrap_servers))
    except BadAddresses as error:
        wrong["bootstrap_servers"] = error.messages
    if cluster.controller_servers:
        try:
            cluster.controller_servers = ",".join(read_addresses(cluster.controller_servers))
        except BadAddresses as error:
            wrong["controller_servers"] = error.messages
    if cluster.zookeeper:
        _check_zookeeper(cluster, wrong)
    if named:
        _check_name(cluster, wrong)
    _check_security(cluster, wrong)
    if wrong:
        raise ClusterRefused(wrong)
    secret = [field.name for field in cluster._meta.fields if isinstance(field, EncryptedTextField)]
    try:
        cluster.clean_fields(exclude=secret)
    except ValidationError as error:
        raise ClusterRefused(error.message_dict) from error


def _keep_secrets_in_place(before: Mapping[str, Any], cluster: Cluster) -> None:
    """Raises Refused where a stored secret would be used in another way than it was entered for."""
    use, meant = cluster.secret_use(), SecretUse.of(before)
    kept = [name for name in cluster.secret_fields if before[name] and cluster.__dict__[name] == before[name]]
    changed = {name: use.beyond(meant, name) for name in sorted(kept)}
    wrong = {
        name: [coded(ClusterErrorCode.SECRET_ENTERED_FOR_OTHER, changed=words)]
        for name, words in changed.items()
        if words
    }
    if wrong:
        raise ClusterRefused(wrong)


def _check_zookeeper(cluster: Cluster, wrong: dict[str, Sequence[CodedMessage | str]]) -> None:
    try:
        cluster.zookeeper = read_zookeeper(cluster.zookeeper)
    except BadAddresses as error:
        wrong["zookeeper"] = error.messages
    if bool(cluster.zookeeper_username) != bool(cluster.__dict__["zookeeper_password"]):
        wrong["zookeeper_username"] = [coded(ClusterErrorCode.ZOOKEEPER_LOGIN_HALF)]
    elif ":" in cluster.zookeeper_username:
        wrong["zookeeper_username"] = [coded(ClusterErrorCode.ZOOKEEPER_USER_WRONG)]


def _check_name(cluster: Cluster, wrong: dict[str, Sequence[CodedMessage | str]]) -> None:
    others = Cluster.objects.exclude(pk=cluster.pk)
    if not cluster.slug:
        wrong["name"] = [coded(ClusterErrorCode.CLUSTER_NAME_EMPTY)]
    elif len(cluster.name) > 64:
        wrong["name"] = [coded(ClusterErrorCode.CLUSTER_NAME_TOO_LONG, length=len(cluster.name))]
    elif others.filter(name=cluster.name).exists():
        wrong["name"] = [coded(ClusterErrorCode.CLUSTER_NAME_TAKEN, name=cluster.name)]
    elif (same := others.filter(slug=cluster.slug).first()) is not None:
        wrong["name"] = [coded(ClusterErrorCode.CLUSTER_NAME_TOO_ALIKE, other=same.name, slug=cluster.slug)]


def _check_security(cluster: Cluster, wrong: dict[str, Sequence[CodedMessage | str]]) -> None:
    if cluster.security_protocol not in SecurityProtocol.values:
        known = ", ".join(SecurityProtocol.values)
        wrong["security_protocol"] = [
            coded(KafkaErrorCode.PROTOCOL_UNKNOWN, protocol=cluster.security_protocol, known=known)
        ]
    if "SASL" in cluster.security_protocol:
        if cluster.sasl_mechanism not in SASL_MECHANISMS:
            kerberos = cluster.sasl_mechanism == KERBEROS
            code = KafkaErrorCode.KERBEROS_UNSUPPORTED if kerberos else ClusterErrorCode.MECHANISM_NEEDED
            wrong["sasl_mechanism"] = [coded(code, known=", ".join(SASL_MECHANISMS))]
        if not cluster.sasl_username or not cluster.__dict__["sasl_password"]:
            wrong["sasl_username"] = [coded(ClusterErrorCode.LOGIN_NEEDED)]
        if cluster.sasl_mechanism == OAUTHBEARER:
            _check_oauth(cluster, wrong)
    if bool(cluster.certificate_pem) != bool(cluster.__dict__["key_pem"]):
        wrong["certificate_pem"] = [coded(ClusterErrorCode.PAIR_NEEDED)]
    elif isinstance(cluster.__dict__["key_pem"], str) and cluster.certificate_pem:  # a sealed key was checked before
        _check_tls(wrong, "key_pem", certificate_pem=cluster.certificate_pem, key_pem=cluster.key_pem)
    if cluster.ca_pem:
        _check_tls(wrong, "ca_pem", ca_pem=cluster.ca_pem)


def _check_oauth(cluster: Cluster, wrong: dict[str, Sequence[CodedMessage | str]]) -> None:
    if not cluster.oauth_endpoint:
        wrong["oauth_endpoint"] = [coded(ClusterErrorCode.TOKEN_ENDPOINT_NEEDED)]
    else:
        try:
            check_endpoint(cluster.oauth_endpoint, cluster.security_protocol)
        except NotSupported as refusal:
            wrong["oauth_endpoint"] = [refusal.message]
    try:
        read_extensions(cluster.oauth_extensions)
    except NotSupported as refusal:
        wrong["oauth_extensions"] = [refusal.message]


def _check_tls(wrong: dict[str, Sequence[CodedMessage | str]], field: str, **texts: Any) -> None:
    """Check that OpenSSL can use these PEM texts; if not, add the refusal to ``wrong``."""
    try:
        ssl_context(ConnectionSecurity(protocol="SSL", **texts))
    except AuthenticationFailed as refusal:
        wrong[field] = [refusal.message]


def shown_values(cluster: models.Model, names: tuple[str, ...] | list[str]) -> dict[str, Any]:
    """For the audit: values that are set, secrets as a mark that there is one."""
    shown: dict[str, Any] = {}
    for name in names:
        value = cluster.__dict__[name]
        if isinstance(cluster._meta.get_field(name), EncryptedTextField):
            shown[name] = "set" if value else ""
        else:
            shown[name] = value
    return shown


def _role_facts(role: ClusterRole) -> dict[str, str | None]:
    return {
        "user": role.user.get_username(),
        "role": str(role.role),
        "cluster": role.cluster.slug if role.cluster else None,
        "expires_at": role.expires_at.isoformat() if role.expires_at else None,
        "counts_from": role.counts_from.isoformat(timespec="seconds"),
    }
