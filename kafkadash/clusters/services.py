"""Everything that changes registered clusters and roles. Each change and its audit event are one transaction."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.db import IntegrityError, models, transaction
from django.db.models import F
from django.http import HttpRequest
from django.utils.text import slugify

from kafkadash.accounts.audit import record
from kafkadash.accounts.models import User
from kafkadash.clusters.addresses import BadAddresses, read_addresses
from kafkadash.clusters.models import Cluster, ClusterRole, Mode, Role, SecurityProtocol
from kafkadash.clusters.secrets import EncryptedTextField

SASL_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")

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
)


class Refused(Exception):
    """``sentences`` says what was wrong, field by field ('' for the whole)."""

    def __init__(self, sentences: Mapping[str, list[str]]) -> None:
        super().__init__(" ".join(sentence for several in sentences.values() for sentence in several))
        self.sentences = dict(sentences)


class IdentityChanged(Exception):
    """Behind a cluster's addresses answers another Kafka cluster than before; ``str()`` explains it."""


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
            after = {"name": name, "read_only": read_only, **_shown(cluster, CONNECTION_FIELDS)}
            record(actor, "cluster.registered", cluster, cluster=cluster.slug, after=after, request=request)
    except IntegrityError as error:  # somebody else took the name after the check
        raise Refused({"name": [f"A cluster called {name} has just been registered by somebody else."]}) from error
    return cluster


def update_connection(
    actor: User | str, cluster: Cluster, *, request: HttpRequest | None = None, **connection: Any
) -> Cluster:
    """Change addresses or secrets; the next question to Kafka uses them, in every process. Nothing changed: no event.

    Raises Refused with a sentence for each thing that is wrong.
    """
    with transaction.atomic():
        current = Cluster.objects.select_for_update().get(pk=cluster.pk)
        before = {name: current.__dict__[name] for name in CONNECTION_FIELDS}
        shown_before = _shown(current, CONNECTION_FIELDS)
        _assign(current, connection)
        _check(current)
        changed = [name for name in CONNECTION_FIELDS if current.__dict__[name] != before[name]]
        if changed:
            current.connection_version = F("connection_version") + 1
            current.save(update_fields=[*changed, "connection_version"])
            record(
                actor,
                "cluster.connection_changed",
                current,
                cluster=current.slug,
                before={name: shown_before[name] for name in changed},
                after=_shown(current, changed),
                request=request,
            )
            current.refresh_from_db()
    return current


def set_enabled(actor: User | str, cluster: Cluster, enabled: bool, *, request: HttpRequest | None = None) -> bool:
    """Switch collection on or off; what was collected stays. Returns whether anything changed."""
    with transaction.atomic():
        changed = Cluster.objects.filter(pk=cluster.pk, enabled=not enabled).update(enabled=enabled)
        if changed:
            verb = "cluster.enabled" if enabled else "cluster.disabled"
            record(actor, verb, cluster, cluster=cluster.slug, request=request)
    return bool(changed)


def check_identity(cluster: Cluster, kafka_id: str) -> None:
    """Raises IdentityChanged when another Kafka cluster answers than before: their figures must not be mixed."""
    if cluster.kafka_id and cluster.kafka_id != kafka_id:
        raise IdentityChanged(
            f"Behind the addresses of {cluster.name} answers the Kafka cluster {kafka_id}, and not {cluster.kafka_id} "
            f"as before. Correct the addresses, or register the other cluster under a name of its own; nothing was "
            f"stored."
        )


def learn_identity(actor: User | str, cluster_id: int, *, kafka_id: str, mode: Mode = Mode.UNKNOWN) -> None:
    """Keep Kafka's own cluster id and how it keeps its metadata; call it inside the transaction that stores the answer.

    The id is kept at the first contact; the mode may change, as clusters move from ZooKeeper to KRaft. Raises
    IdentityChanged as ``check_identity`` does.
    """
    with transaction.atomic():
        cluster = Cluster.objects.select_for_update().get(pk=cluster_id)
        check_identity(cluster, kafka_id)
        before = {"kafka_id": cluster.kafka_id, "mode": cluster.mode}
        after = {"kafka_id": kafka_id, "mode": mode if mode != Mode.UNKNOWN else cluster.mode}
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
    """A role on that cluster, or on all where none is named; given again, it gets the new expiry."""
    with transaction.atomic():
        held = ClusterRole.objects.select_for_update().filter(user=user, role=role, cluster=cluster).first()
        before = _role_facts(held) if held else None
        given, _ = ClusterRole.objects.update_or_create(
            user=user, role=role, cluster=cluster, defaults={"expires_at": expires_at}
        )
        after = _role_facts(given)
        if before != after:
            slug = cluster.slug if cluster else ""
            record(actor, "role.given", user, cluster=slug, before=before, after=after, request=request)
    return given


def remove_role(
    actor: User | str,
    user: User,
    role: Role,
    *,
    cluster: Cluster | None = None,
    request: HttpRequest | None = None,
) -> bool:
    """Take a role away that was given on exactly this cluster (or on all). Returns whether there was one."""
    with transaction.atomic():
        held = ClusterRole.objects.select_for_update().filter(user=user, role=role, cluster=cluster).first()
        if held is None:
            return False
        before = _role_facts(held)
        held.delete()
        slug = cluster.slug if cluster else ""
        record(actor, "role.removed", user, cluster=slug, before=before, request=request)
    return True


def _assign(cluster: Cluster, values: Mapping[str, Any]) -> None:
    unknown = sorted(values.keys() - set(CONNECTION_FIELDS))
    if unknown:
        raise TypeError(f"Not a part of a connection: {', '.join(unknown)}")
    for name, value in values.items():
        setattr(cluster, name, value.strip() if isinstance(value, str) and "password" not in name else value)


def _check(cluster: Cluster) -> None:
    """Raises Refused; normalizes the addresses."""
    wrong: dict[str, list[str]] = {}
    try:
        cluster.bootstrap_servers = ",".join(read_addresses(cluster.bootstrap_servers))
    except BadAddresses as error:
        wrong["bootstrap_servers"] = error.sentences
    if cluster.controller_servers:
        try:
            cluster.controller_servers = ",".join(read_addresses(cluster.controller_servers))
        except BadAddresses as error:
            wrong["controller_servers"] = error.sentences
    _check_name(cluster, wrong)
    _check_security(cluster, wrong)
    if wrong:
        raise Refused(wrong)
    secret = [field.name for field in cluster._meta.fields if isinstance(field, EncryptedTextField)]
    try:
        cluster.clean_fields(exclude=secret)
    except ValidationError as error:
        raise Refused(error.message_dict) from error


def _check_name(cluster: Cluster, wrong: dict[str, list[str]]) -> None:
    others = Cluster.objects.exclude(pk=cluster.pk)
    if not cluster.slug:
        wrong["name"] = ["A name needs at least one letter or digit, as it becomes part of the page's address."]
    elif len(cluster.name) > 64:
        wrong["name"] = [f"The name has {len(cluster.name)} characters; 64 is the most."]
    elif others.filter(name=cluster.name).exists():
        wrong["name"] = [f"A cluster called {cluster.name} is registered already."]
    elif (same := others.filter(slug=cluster.slug).first()) is not None:
        wrong["name"] = [f"The name is too much like {same.name}: both would have the address {cluster.slug}."]


def _check_security(cluster: Cluster, wrong: dict[str, list[str]]) -> None:
    if cluster.security_protocol not in SecurityProtocol.values:
        known = ", ".join(SecurityProtocol.values)
        wrong["security_protocol"] = [f"{cluster.security_protocol} is not one of {known}."]
    if "SASL" in cluster.security_protocol:
        if cluster.sasl_mechanism not in SASL_MECHANISMS:
            wrong["sasl_mechanism"] = [f"SASL needs a mechanism, one of {', '.join(SASL_MECHANISMS)}."]
        if not cluster.sasl_username or not cluster.__dict__["sasl_password"]:
            wrong["sasl_username"] = ["SASL needs a user name and a password."]
    if bool(cluster.certificate_pem) != bool(cluster.__dict__["key_pem"]):
        wrong["certificate_pem"] = ["A client certificate and its private key belong together: give both or neither."]


def _shown(cluster: models.Model, names: tuple[str, ...] | list[str]) -> dict[str, Any]:
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
    }
