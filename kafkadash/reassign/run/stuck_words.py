"""Why a row does not get on, in words; ``domain.run_stuck`` finds the cause."""

from __future__ import annotations

from collections.abc import Mapping

from kafkadash.domain.run_progress import Cause

SENTENCES: Mapping[Cause, str] = {
    Cause.DESTINATION_AWAY: "A broker that it goes to is away.",
    Cause.KEPT_REPLICA_AWAY: "A replica that stays is on a broker that is away.",
    Cause.NO_LEADER: "The partition has no leader to copy from.",
    Cause.BELOW_INBOUND: "The throttle is below what the partition receives.",
    Cause.DESTINATION_DISK: "The disk that it goes to cannot take it.",
    Cause.SOURCE_AT_THROTTLE: "The broker that it copies from sends all that its throttle allows.",
    Cause.FOREIGN_THROTTLE: "A throttle that is not ours holds it up.",
    Cause.REFUSED: "The cluster refused.",
    Cause.UNKNOWN: "Nobody can tell why.",
}

SHORTLY: Mapping[Cause, str] = {
    Cause.DESTINATION_AWAY: "destination away",
    Cause.KEPT_REPLICA_AWAY: "kept replica away",
    Cause.NO_LEADER: "no leader",
    Cause.BELOW_INBOUND: "throttle below inbound",
    Cause.DESTINATION_DISK: "destination disk",
    Cause.SOURCE_AT_THROTTLE: "source at its throttle",
    Cause.FOREIGN_THROTTLE: "throttle of others",
    Cause.REFUSED: "refused",
    Cause.UNKNOWN: "cause not known",
}
