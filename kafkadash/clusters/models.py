"""Registered clusters and who may do what on them."""

from __future__ import annotations

from collections.abc import Mapping

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from kafkadash.clusters.secrets import USE_FIELDS, EncryptedTextField, SecretUse
from kafkadash.kafka.api import ClusterConnection, ConnectionSecurity, ZooKeeperConnection


class ClusterMode(models.TextChoices):
    """How the cluster keeps its metadata; learned from the brokers, never entered."""

    UNKNOWN = "unknown", "unknown"
    KRAFT = "kraft", "KRaft"
    ZOOKEEPER = "zookeeper", "ZooKeeper"


class SecurityProtocol(models.TextChoices):
    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"


# Stored secrets, and the protocols of Kafka that use them.
SECRETS: Mapping[str, frozenset[str]] = {
    "sasl_password": frozenset({SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL}),
    "key_pem": frozenset({SecurityProtocol.SSL, SecurityProtocol.SASL_SSL}),
    "zookeeper_password": frozenset(),
}


class RegisteredManager(models.Manager["Cluster"]):
    """Without the clusters that were removed and whose rows are still being deleted."""

    def get_queryset(self) -> models.QuerySet[Cluster]:
        return super().get_queryset().filter(removed_at=None)


class Cluster(models.Model):
    """A Kafka cluster that kafkadash watches. ``kafka_id`` is Kafka's own cluster id, learned at the first contact.

    ``objects`` has the registered ones, ``with_removed`` also those that ``services.remove_cluster`` took away: they
    are not shown, not collected and have given their name back, and the tick deletes what is left of them.
    """

    name = models.CharField(max_length=64, unique=True)
    slug = models.SlugField(max_length=64, unique=True)
    bootstrap_servers = models.TextField(help_text="host:port, separated by commas")
    controller_servers = models.TextField(blank=True, help_text="host:port of the controllers, optional")
    zookeeper = models.TextField(blank=True, help_text="host:port,host:port/path, only in ZooKeeper mode")
    security_protocol = models.CharField(max_length=16, choices=SecurityProtocol, default=SecurityProtocol.PLAINTEXT)
    sasl_mechanism = models.CharField(max_length=32, blank=True)
    sasl_username = models.CharField(max_length=255, blank=True)
    sasl_password = EncryptedTextField(blank=True, default="")
    ca_pem = models.TextField(blank=True)
    certificate_pem = models.TextField(blank=True)
    key_pem = EncryptedTextField(blank=True, default="")
    check_hostname = models.BooleanField(default=True)
    oauth_endpoint = models.CharField(max_length=2000, blank=True, default="", db_default="")
    oauth_scope = models.CharField(max_length=255, blank=True, default="", db_default="")
    oauth_extensions = models.CharField(max_length=1000, blank=True, default="", db_default="")
    zookeeper_username = models.CharField(max_length=255, blank=True, default="", db_default="")
    zookeeper_password = EncryptedTextField(blank=True, default="", db_default="")
    zookeeper_tls = models.BooleanField(default=False, db_default=False)
    connection_version = models.PositiveIntegerField(default=1, help_text="counts changes of addresses or secrets")

    mode = models.CharField(max_length=16, choices=ClusterMode, default=ClusterMode.UNKNOWN)
    kafka_id = models.CharField(max_length=64, blank=True)
    other_kafka_id = models.CharField(
        max_length=64, blank=True, help_text="id of a different Kafka cluster that now answers at this address"
    )
    same_as = models.ForeignKey(
        "self",
        models.SET_NULL,
        null=True,
        blank=True,
        editable=False,
        related_name="doubles",
        help_text="the cluster that was registered first for the same Kafka cluster",
    )
    read_only = models.BooleanField(default=False)
    enabled = models.BooleanField(default=True)
    cadence = models.JSONField(default=dict, blank=True, help_text="kind → seconds, where it differs from the default")
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    removed_at = models.DateTimeField(null=True, blank=True, editable=False)

    objects = RegisteredManager()
    with_removed: models.Manager[Cluster] = models.Manager()

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name

    @property
    def addresses(self) -> list[str]:
        """The bootstrap addresses, host:port each."""
        return [s.strip() for s in self.bootstrap_servers.split(",") if s.strip()]

    @property
    def connection_key(self) -> str:
        """Names its client in a process."""
        return f"cluster-{self.pk}"

    @property
    def secret_fields(self) -> frozenset[str]:
        """The stored secrets that its protocol uses, and those that ZooKeeper gets."""
        used = {name for name, protocols in SECRETS.items() if self.security_protocol in protocols}
        if self.zookeeper and self.zookeeper_username:
            used.add("zookeeper_password")
        if self.zookeeper and self.zookeeper_tls:
            used.add("key_pem")
        return frozenset(used)

    def secret_use(self) -> SecretUse:
        return SecretUse.of({name: getattr(self, name) for name in USE_FIELDS})

    def connection(self) -> ClusterConnection:
        """Addresses and secrets as the Kafka adapter takes them; only secrets that the protocol uses are opened.

        Raises SecretError.
        """
        used = {name for name, protocols in SECRETS.items() if self.security_protocol in protocols}
        return ClusterConnection(
            key=self.connection_key,
            version=self.connection_version,
            bootstrap_servers=tuple(self.addresses),
            controller_servers=tuple(s.strip() for s in self.controller_servers.split(",") if s.strip()),
            networks=tuple(settings.KAFKA_NETWORKS),
            zookeeper=self.zookeeper_connection(),
            security=ConnectionSecurity(
                protocol=self.security_protocol,
                sasl_mechanism=self.sasl_mechanism,
                sasl_username=self.sasl_username,
                sasl_password=self.sasl_password if "sasl_password" in used else "",
                ca_pem=self.ca_pem,
                certificate_pem=self.certificate_pem,
                key_pem=self.key_pem if "key_pem" in used else "",
                check_hostname=self.check_hostname,
                oauth_endpoint=self.oauth_endpoint,
                oauth_scope=self.oauth_scope,
                oauth_extensions=self.oauth_extensions,
            ),
        )

    def zookeeper_connection(self) -> ZooKeeperConnection | None:
        """How the ensemble is reached, with TLS by the certificates of the Kafka connection; None without address.

        Raises SecretError.
        """
        if not self.zookeeper:
            return None
        servers, slash, path = self.zookeeper.partition("/")
        tls = ConnectionSecurity(
            protocol="SSL",
            ca_pem=self.ca_pem,
            certificate_pem=self.certificate_pem,
            key_pem=self.key_pem if self.zookeeper_tls else "",
            check_hostname=self.check_hostname,
        )
        return ZooKeeperConnection(
            addresses=tuple(servers.split(",")),
            chroot=f"{slash}{path}",
            username=self.zookeeper_username,
            password=self.zookeeper_password if self.zookeeper_username else "",
            tls=tls if self.zookeeper_tls else None,
            networks=tuple(settings.KAFKA_NETWORKS),
            kafka_id=self.kafka_id,
        )


class Role(models.TextChoices):
    """Role of a person on a cluster. See ``access.ALLOWS`` for what each may do."""

    VIEWER = "viewer", "viewer"
    OPERATOR = "operator", "operator"
    APPROVER = "approver", "approver"
    AUDITOR = "auditor", "auditor"
    ADMIN = "admin", "admin"


class ClusterRole(models.Model):
    """A role of one user on one cluster, or on all where ``cluster`` is empty; until ``expires_at``, if set.

    ``counts_from``: before that, nothing is approved or started by it. ``given_by`` is None where it was given on the
    server.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="cluster_roles")
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, null=True, blank=True, related_name="roles")
    role = models.CharField(max_length=16, choices=Role)
    expires_at = models.DateTimeField(null=True, blank=True)
    given_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    counts_from = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["user", "cluster", "role"], name="one_role_once", nulls_distinct=False),
            models.CheckConstraint(condition=Q(role__in=Role.values), name="role_is_known"),
        )

    def __str__(self) -> str:
        return f"{self.user_id} {self.role} on {self.cluster_id or 'all clusters'}"


class AllowedLag(models.Model):
    """How many records may wait in each partition of some groups; ``clusters.allowed_lag`` says which rule decides."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="allowed_lags")
    pattern = models.CharField(max_length=255, help_text="name of a group; * stands for any characters, ? for one")
    records = models.BigIntegerField()

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["cluster", "pattern"], name="one_allowed_lag_per_pattern"),
            models.CheckConstraint(condition=Q(records__gte=0), name="allowed_lag_not_negative"),
        )

    def __str__(self) -> str:
        return f"{self.pattern}: {self.records}"
