"""The controller quorum (KIP-836): who leads it and how far every voter and observer is."""

from __future__ import annotations

from collections.abc import Sequence

from kafkadash.kafka.port import QuorumReplica
from kafkadash.observe.collectors.reading import Asking, Reading, moment
from kafkadash.observe.lease import Stamp
from kafkadash.observe.models import QuorumSnapshot


def read(asking: Asking) -> Reading:
    asking.step()
    quorum = asking.admin.quorum(deadline=asking.deadline)
    replicas = _pack(quorum.voters, voter=True) + _pack(quorum.observers, voter=False)
    snapshot = QuorumSnapshot(
        cluster=asking.cluster,
        taken_at=moment(quorum.taken_at),
        leader_id=quorum.leader_id,
        leader_epoch=quorum.leader_epoch,
        high_watermark=quorum.high_watermark,
        replicas=replicas,
    )

    def write(stamp: Stamp) -> None:
        snapshot.epoch, snapshot.seq = stamp.epoch, stamp.seq
        snapshot.save(force_insert=True)

    return Reading(taken_at=snapshot.taken_at, rows=len(replicas), write=write)


def _pack(replicas: Sequence[QuorumReplica], *, voter: bool) -> list[dict[str, object]]:
    return [
        {
            "id": r.id,
            "directory_id": r.directory_id,
            "voter": voter,
            "log_end_offset": r.log_end_offset,
            "last_fetch_ms": r.last_fetch_ms,
            "last_caught_up_ms": r.last_caught_up_ms,
        }
        for r in sorted(replicas, key=lambda r: (r.id, r.directory_id))
    ]
