"""What was seen in the clusters. Pages read only these rows; only collectors write them.

Packed columns carry the layout's number in ``format``; readers know the current one and the one before.
Ages are always those of the data (``taken_at`` in an answer), not of the row.
"""

from kafkadash.observe.models.collection import Collection, CollectorRun, Kind
from kafkadash.observe.models.groups import GroupLagPoint, GroupState, GroupWindow, UnjudgedGroup
from kafkadash.observe.models.history import (
    CatchUp,
    DiskForecast,
    PipelineLedger,
    PipelineState,
    Rollup,
    Series,
    SeriesKind,
    VerdictCount,
    VerdictDifference,
    Workload,
)
from kafkadash.observe.models.quorum import QuorumReplicaState, QuorumSnapshot
from kafkadash.observe.models.reassignment import Outcome, ReassignmentSnapshot, StartedFrom
from kafkadash.observe.models.segments import SegmentCounter, SegmentOutbox, SegmentWriter
from kafkadash.observe.models.state import (
    BrokerState,
    BrokerWeights,
    Capabilities,
    ClusterState,
    ConfigSource,
    ThrottledResource,
    ThrottleState,
    TopicState,
)

__all__ = [
    "BrokerState",
    "BrokerWeights",
    "Capabilities",
    "CatchUp",
    "ClusterState",
    "Collection",
    "CollectorRun",
    "ConfigSource",
    "DiskForecast",
    "GroupLagPoint",
    "GroupState",
    "GroupWindow",
    "Kind",
    "Outcome",
    "PipelineLedger",
    "PipelineState",
    "QuorumReplicaState",
    "QuorumSnapshot",
    "ReassignmentSnapshot",
    "Rollup",
    "SegmentCounter",
    "SegmentOutbox",
    "SegmentWriter",
    "Series",
    "SeriesKind",
    "StartedFrom",
    "ThrottleState",
    "ThrottledResource",
    "TopicState",
    "UnjudgedGroup",
    "VerdictCount",
    "VerdictDifference",
    "Workload",
]
