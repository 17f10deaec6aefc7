"""Give every new node its identity on disk.

Kafka's storage tool formats one controller; the others get copies of its files with ids of their own, which saves a
Java start for each node. The files (classes org.apache.kafka.metadata.properties.MetaProperties and
org.apache.kafka.metadata.bootstrap.BootstrapDirectory) differ between nodes by `node.id` and `directory.id` alone;
the first snapshot of the quorum, which names all voters, belongs to controllers only.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from kafkadash.embedded.ports import LOOPBACK
from kafkadash.playground.identifiers import new_id
from kafkadash.playground.runtime import Runtime
from kafkadash.playground.state import Cluster, Layout, Node

IDENTITY = "meta.properties"
BOOTSTRAP = "bootstrap.checkpoint"
METADATA_TOPIC = "__cluster_metadata-0"


def format_nodes(cluster: Cluster, layout: Layout, runtime: Runtime, more: Sequence[str] = ()) -> None:
    """Format the nodes that are not formatted yet; `more` goes to the storage tool.

    Raises ServerError when it refuses.
    """
    first = cluster.controllers[0]
    if not _formatted(layout, first):
        shutil.rmtree(layout.folder / "data", ignore_errors=True)
        voters = ",".join(
            f"{node.node_id}@{LOOPBACK}:{node.controller_port}:{node.directory_id}" for node in cluster.controllers
        )
        properties = layout.properties(first)
        runtime.format_storage(cluster.cluster_id, properties, ["--initial-controllers", voters, *more])
    template = layout.metadata_dir(first)
    for node in cluster.nodes:
        if not _formatted(layout, node):
            shutil.rmtree(layout.data(node), ignore_errors=True)
            _copy_identity(template, cluster, layout, node)


def _formatted(layout: Layout, node: Node) -> bool:
    return (layout.metadata_dir(node) / IDENTITY).exists()


def _copy_identity(template: Path, cluster: Cluster, layout: Layout, node: Node) -> None:
    metadata = layout.metadata_dir(node)
    # The metadata folder comes last, its identity at its very end: a node without it counts as not formatted.
    for folder in dict.fromkeys([*layout.log_dirs(cluster, node), metadata]):
        folder.mkdir(parents=True)
        shutil.copy(template / BOOTSTRAP, folder)
        if folder == metadata and node.controller_port is not None:
            snapshots = [path for path in (template / METADATA_TOPIC).iterdir() if path.suffix == ".checkpoint"]
            (folder / METADATA_TOPIC).mkdir()
            shutil.copy(min(snapshots), folder / METADATA_TOPIC)
        directory_id = node.directory_id if folder == metadata and node.directory_id is not None else new_id()
        values = {
            "version": 1,
            "cluster.id": cluster.cluster_id,
            "node.id": node.node_id,
            "directory.id": directory_id,
        }
        text = "".join(f"{key}={value}\n" for key, value in values.items())
        (folder / IDENTITY).write_text(text, encoding="ascii")
