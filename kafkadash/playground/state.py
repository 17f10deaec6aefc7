"""What a playground folder is: its nodes, their ports and racks, in one JSON file, and where each node's files are."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from kafkadash.embedded.files import write_atomically
from kafkadash.embedded.ports import LOOPBACK, free_port
from kafkadash.embedded.process import ServerError
from kafkadash.playground.errors import PlaygroundErrorCode
from kafkadash.playground.identifiers import new_id

STATE_NAME = "playground.json"
STATE_FORMAT = 1
NODE_NAME = re.compile(r"kafka-[0-9]+")
DEFAULT_RACKS = ("a", "a", "b", "b", "c")
# Separate controllers are numbered apart from brokers, so that another broker never meets them.
FIRST_CONTROLLER_ID = 101


@dataclass(frozen=True, slots=True)
class Node:
    """Ports are loopback TCP ports, None for a role the node does not have.

    `directory_id` is set for controllers: the id of their metadata folder, by which a quorum knows a voter (KIP-853).
    `secured_ports` are those of a broker's further listeners, by name (see `security.Secured`).
    """

    node_id: int
    broker_port: int | None
    controller_port: int | None
    rack: str | None
    directory_id: str | None
    secured_ports: dict[str, int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"kafka-{self.node_id}"

    @property
    def roles(self) -> str:
        roles = [("broker", self.broker_port), ("controller", self.controller_port)]
        return "+".join(role for role, port in roles if port is not None)


@dataclass(frozen=True, slots=True)
class Cluster:
    """`dirs` is the number of log directories of each broker, `added` the ids of those it was not made with."""

    cluster_id: str
    dirs: int
    nodes: tuple[Node, ...]
    added: tuple[int, ...] = ()

    @property
    def brokers(self) -> list[Node]:
        return [node for node in self.nodes if node.broker_port is not None]

    @property
    def controllers(self) -> list[Node]:
        return [node for node in self.nodes if node.controller_port is not None]

    @property
    def made_with(self) -> list[Node]:
        """The brokers it had at first."""
        return [node for node in self.brokers if node.node_id not in self.added]

    @property
    def bootstrap(self) -> str:
        return ",".join(f"{LOOPBACK}:{node.broker_port}" for node in self.brokers)

    def secured_bootstrap(self, listener: str) -> str:
        """All brokers at the listener of this name."""
        return ",".join(f"{LOOPBACK}:{node.secured_ports[listener]}" for node in self.brokers)

    @property
    def controller_bootstrap(self) -> str:
        return ",".join(f"{LOOPBACK}:{node.controller_port}" for node in self.controllers)


@dataclass(frozen=True, slots=True)
class Layout:
    """Paths inside a playground folder."""

    folder: Path

    @property
    def state(self) -> Path:
        return self.folder / STATE_NAME

    def log(self, name: str) -> Path:
        """The log of the node of that name, see `Node.name`."""
        return self.folder / "logs" / f"{name}.log"

    def properties(self, node: Node) -> Path:
        return self.folder / "config" / f"{node.name}.properties"

    def data(self, node: Node) -> Path:
        return self.folder / "data" / node.name

    def metadata_dir(self, node: Node) -> Path:
        return self.data(node) / "metadata"

    def log_dirs(self, cluster: Cluster, node: Node) -> list[Path]:
        """Kafka's log.dirs; a node that is only a controller has nothing but its metadata."""
        if node.broker_port is None:
            return [self.metadata_dir(node)]
        return [self.data(node) / f"logs-{i}" for i in range(1, cluster.dirs + 1)]


def new_cluster(
    brokers: int | None, racks: Sequence[str] | None, controllers: int, dirs: int, listeners: Iterable[str] = ()
) -> Cluster:
    """A description with ports still 0. One controller is combined with broker 1, more are nodes of their own."""
    count = brokers if brokers is not None else len(racks or DEFAULT_RACKS)
    if count < 1 or controllers < 1 or dirs < 1:
        raise ServerError(PlaygroundErrorCode.PLAYGROUND_TOO_SMALL)
    chosen = tuple(racks) if racks is not None else tuple(DEFAULT_RACKS[i % len(DEFAULT_RACKS)] for i in range(count))
    if len(chosen) != count:
        raise ServerError(
            PlaygroundErrorCode.RACKS_DO_NOT_FIT, brokers=count, racks=len(chosen), given=",".join(chosen)
        )
    combined = controllers == 1
    further = dict.fromkeys(listeners, 0)
    nodes = [
        Node(i, 0, 0 if combined and i == 1 else None, rack, new_id() if combined and i == 1 else None, dict(further))
        for i, rack in enumerate(chosen, 1)
    ]
    if not combined:
        nodes += [Node(FIRST_CONTROLLER_ID + i, None, 0, None, new_id()) for i in range(controllers)]
    return Cluster(new_id(), dirs, tuple(nodes))


def grown(cluster: Cluster, rack: str | None) -> Cluster:
    """With one more broker, the last of `added`, its ports still 0. Its id is above the brokers' and no other's."""
    ids = {node.node_id for node in cluster.nodes}
    last = max(node.node_id for node in cluster.brokers)
    new = next(i for i in range(last + 1, last + len(ids) + 2) if i not in ids)
    node = Node(new, 0, None, rack or None, None, dict.fromkeys(cluster.brokers[0].secured_ports, 0))
    nodes = tuple(sorted([*cluster.nodes, node], key=lambda node: node.node_id))
    return replace(cluster, nodes=nodes, added=(*cluster.added, new))


def difference(
    cluster: Cluster, brokers: int | None, racks: Sequence[str] | None, controllers: int | None, dirs: int | None
) -> tuple[str, object, object] | None:
    """What is not as asked for (None: anything will do), as it is, as asked; None where all is as asked.

    Who asks for the brokers that the cluster was made with means it too, for nobody takes back those that were added.
    """
    wanted = (brokers, ",".join(racks) if racks is not None else None, controllers, dirs)
    found = None
    for nodes in (cluster.made_with, cluster.brokers):
        present = (len(nodes), ",".join(n.rack or "" for n in nodes), len(cluster.controllers), cluster.dirs)
        names = ("brokers", "racks", "controllers", "log directories")
        rows = zip(names, present, wanted, strict=True)
        found = next((row for row in rows if row[2] is not None and row[1] != row[2]), None)
        if found is None:
            break
    return found


def choose_ports(cluster: Cluster, keep: set[str]) -> Cluster:
    """The same cluster with ports that are free: stored ones where they still are, new ones elsewhere.

    Nodes named in `keep` (they run) are not asked. Brokers may move at will, for they register anew at each start. The
    voters' addresses are part of the quorum's own log: a voter that finds a majority at the stored addresses corrects
    its own (KIP-853), so at most a minority may move, or the only one. Raises ServerError beyond that.
    """
    taken: set[int] = set()

    def choose(stored: int | None, name: str) -> int | None:
        if stored is None or name in keep:
            return stored
        port = free_port(stored or None, taken)
        taken.add(port)
        return port

    nodes = tuple(
        replace(
            node,
            broker_port=choose(node.broker_port, node.name),
            controller_port=choose(node.controller_port, node.name),
            secured_ports={name: choose(port, node.name) or 0 for name, port in node.secured_ports.items()},
        )
        for node in cluster.nodes
    )
    voters = len(cluster.controllers)
    moved = [
        str(old.controller_port)
        for old, new in zip(cluster.nodes, nodes, strict=True)
        if old.controller_port and old.controller_port != new.controller_port
    ]
    if voters > 1 and len(moved) * 2 >= voters:
        raise ServerError(
            PlaygroundErrorCode.CONTROLLERS_CANNOT_MOVE, ports=", ".join(moved), moved=len(moved), all=voters
        )
    return replace(cluster, nodes=nodes)


def read_cluster(folder: Path) -> Cluster | None:
    """The folder's cluster, None when there is none yet."""
    path = Layout(folder).state
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["format"] != STATE_FORMAT:
            raise ServerError(PlaygroundErrorCode.PLAYGROUND_UNREADABLE, file=path, fault="another version wrote it")
        nodes = tuple(Node(**node) for node in document["nodes"])
        return Cluster(document["cluster_id"], document["dirs"], nodes, tuple(document.get("added", ())))
    except (FileNotFoundError, NotADirectoryError):  # where there cannot be a folder, that is said by who makes one
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ServerError(PlaygroundErrorCode.PLAYGROUND_UNREADABLE, file=path, fault=error) from error


def write_cluster(folder: Path, cluster: Cluster) -> None:
    document = {"format": STATE_FORMAT, **asdict(cluster)}
    write_atomically(Layout(folder).state, json.dumps(document, indent=1) + "\n")
