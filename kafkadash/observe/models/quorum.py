"""Answers of the controller quorum (KIP-836), and the status of every node of it."""

from __future__ import annotations

from django.db import models

from kafkadash.clusters.models import Cluster


class QuorumSnapshot(models.Model):
    """One describe-quorum answer (KIP-836). ``leader_id`` is the active controller.

    ``replicas``, format 1: a list of {id, directory_id, voter, log_end_offset, last_fetch_ms, last_caught_up_ms};
    milliseconds on the leader's clock, null where unknown.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE)
    taken_at = models.DateTimeField()
    leader_id = models.IntegerField()
    leader_epoch = models.BigIntegerField()
    high_watermark = models.BigIntegerField(null=True, help_text="empty while a new leader does not know it")
    format = models.PositiveSmallIntegerField(default=1)
    replicas = models.JSONField()
    epoch = models.PositiveBigIntegerField()
    seq = models.PositiveBigIntegerField()

    class Meta:
        constraints = (models.UniqueConstraint(fields=["cluster", "epoch", "seq"], name="one_quorum_snapshot_per_seq"),)
        indexes = (
            models.Index(fields=["cluster", "-taken_at"], name="quorum_newest"),
            models.Index(fields=["cluster", "leader_epoch", "taken_at"], name="quorum_epoch"),
            models.Index(fields=["taken_at"], name="quorum_age"),
        )

    def __str__(self) -> str:
        return f"quorum of cluster {self.cluster_id} at {self.taken_at:%H:%M:%S}"


class QuorumReplicaState(models.Model):
    """The status of one voter or observer, written when it changes; the row stays when the node leaves the answer.

    ``status`` is one of ``domain.quorum.NodeStatus``, or "Gone" for a node that is no longer listed.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE)
    node_id = models.IntegerField()
    directory_id = models.CharField(max_length=22, blank=True)
    voter = models.BooleanField()
    status = models.CharField(max_length=16)
    first_seen_at = models.DateTimeField()
    changed_at = models.DateTimeField(help_text="since when it has this status, as far as seen")

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["cluster", "node_id", "directory_id"], name="one_state_per_quorum_replica"),
        )

    def __str__(self) -> str:
        return f"node {self.node_id} {self.status}"
