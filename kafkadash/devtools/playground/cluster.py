"""A real Kafka cluster on loopback, in KRaft mode or with ZooKeeper: one folder, one process per node.

    playground = Playground(Path("var/playground"))
    playground.up(brokers=5, racks=("a", "a", "b", "b", "c"))
    playground.bootstrap          # "127.0.0.1:20411,127.0.0.1:27310,..."
    playground.add_broker("c")    # 6
    playground.down()

The folder holds the description, data and logs of the cluster; ``up`` on the same folder starts the same cluster again.
All processes are in the folder's ledger, so any later process can stop one node or all of them.

``prepare_runtime`` fetches the jars and records a class archive once per machine. ``run_tool`` runs Kafka's own
command-line tools from the same jars. ``running_playground`` is a cluster for the length of a ``with`` block.

Nodes, ports and racks of the folder are stored in one JSON file. Kafka's storage tool formats one controller. The
other nodes get copies of its files with their own ids, which saves one start of Java per node. The files (classes
org.apache.kafka.metadata.properties.MetaProperties and org.apache.kafka.metadata.bootstrap.BootstrapDirectory) differ
between nodes only by ``node.id`` and ``directory.id``; the first snapshot of the quorum, which names all voters,
belongs to controllers only. Ids are written as org.apache.kafka.common.Uuid prints them.

With ``zookeepers``, brokers of Kafka 3.9 use an ensemble of that many ZooKeeper servers instead of controllers. The
servers start first and stop last. Brokers make their own folders; the cluster's id is made by the first of them.
``begin_migration`` adds a controller that takes the cluster over when its brokers have been started again: they are
between ZooKeeper and KRaft then.

The nodes are configured to start quickly, to detect dead brokers fast and to rotate their logs.

Tests of client authentication use secured listeners: TLS, SASL, ACLs. The plain listener stays for the brokers and for
Kafka's tools: an unauthenticated client is ``User:ANONYMOUS`` there and, with an authorizer, a super user. Certificates
are PEM texts in the properties (``ssl.keystore.type=PEM``, KIP-651), logins are JAAS lines, SCRAM users are records of
the first metadata (KIP-900).
"""

from __future__ import annotations

import base64
import contextlib
import json
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from kafkadash.core.messages import message_text
from kafkadash.devtools.embedded.errors import ServerErrorCode
from kafkadash.devtools.embedded.files import lock_file, write_atomically
from kafkadash.devtools.embedded.ports import LOOPBACK, free_port
from kafkadash.devtools.embedded.process import (
    ChildProcess,
    ServerError,
    reap_leftovers,
    recorded,
    spawn,
    stop_all,
    wait_all,
)
from kafkadash.devtools.playground import jars
from kafkadash.devtools.playground.errors import PlaygroundErrorCode
from kafkadash.devtools.playground.jars import KafkaRuntime, archive_path, find_java
from kafkadash.devtools.playground.load import wait_for_brokers


def new_id() -> str:
    """A random Uuid: 22 characters of url-safe base64, never starting with '-' (tools would take it for a flag)."""
    while True:
        made = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not made.startswith("-"):
            return made


STATE_NAME = "playground.json"
STATE_FORMAT = 1
NODE_NAME = re.compile(r"(kafka|zookeeper)-[0-9]+")
DEFAULT_RACKS = ("a", "a", "b", "b", "c")
# Separate controllers are numbered apart from brokers, so that another broker never meets them.
FIRST_CONTROLLER_ID = 101


@dataclass(frozen=True, slots=True)
class NodeState:
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
class ZooKeeperState:
    """A server of the ensemble; ports are loopback TCP ports.

    ``peer_port`` and ``election_port`` are those between servers, ``secure_port`` that of clients over TLS, None where
    there is none.
    """

    server_id: int
    client_port: int
    peer_port: int
    election_port: int
    secure_port: int | None = None

    @property
    def name(self) -> str:
        return f"zookeeper-{self.server_id}"


@dataclass(frozen=True, slots=True)
class PlaygroundState:
    """`dirs` is the number of log directories of each broker, `added` the ids of those it was not made with.

    `zookeepers` is empty in KRaft mode. With ZooKeeper, `cluster_id` is that of the brokers once they serve.
    """

    cluster_id: str
    dirs: int
    nodes: tuple[NodeState, ...]
    added: tuple[int, ...] = ()
    zookeepers: tuple[ZooKeeperState, ...] = ()

    @property
    def brokers(self) -> list[NodeState]:
        return [node for node in self.nodes if node.broker_port is not None]

    @property
    def controllers(self) -> list[NodeState]:
        return [node for node in self.nodes if node.controller_port is not None]

    @property
    def made_with(self) -> list[NodeState]:
        """The brokers it had at first."""
        return [node for node in self.brokers if node.node_id not in self.added]

    @property
    def bootstrap(self) -> str:
        return ",".join(f"{LOOPBACK}:{node.broker_port}" for node in self.brokers)

    def secured_bootstrap(self, listener: str) -> str:
        """All brokers at the listener of this name."""
        return ",".join(f"{LOOPBACK}:{node.secured_ports[listener]}" for node in self.brokers)

    @property
    def zookeeper(self) -> str:
        """Addresses of the ensemble, as a broker's zookeeper.connect."""
        return ",".join(f"{LOOPBACK}:{server.client_port}" for server in self.zookeepers)

    @property
    def secured_zookeeper(self) -> str:
        """Addresses of the ensemble for clients over TLS."""
        return ",".join(f"{LOOPBACK}:{server.secure_port}" for server in self.zookeepers if server.secure_port)

    @property
    def controller_bootstrap(self) -> str:
        return ",".join(f"{LOOPBACK}:{node.controller_port}" for node in self.controllers)


@dataclass(frozen=True, slots=True)
class PlaygroundLayout:
    """Paths inside a playground folder."""

    folder: Path

    @property
    def state(self) -> Path:
        return self.folder / STATE_NAME

    def log(self, name: str) -> Path:
        """The log of the node of that name, see `Node.name`."""
        return self.folder / "logs" / f"{name}.log"

    def properties(self, node: NodeState | ZooKeeperState) -> Path:
        return self.folder / "config" / f"{node.name}.properties"

    def data(self, node: NodeState | ZooKeeperState) -> Path:
        return self.folder / "data" / node.name

    def metadata_dir(self, node: NodeState) -> Path:
        return self.data(node) / "metadata"

    def log_dirs(self, cluster: PlaygroundState, node: NodeState) -> list[Path]:
        """Kafka's log.dirs; a node that is only a controller has nothing but its metadata."""
        if node.broker_port is None:
            return [self.metadata_dir(node)]
        return [self.data(node) / f"logs-{i}" for i in range(1, cluster.dirs + 1)]


def new_cluster(
    brokers: int | None,
    racks: Sequence[str] | None,
    controllers: int,
    dirs: int,
    listeners: Iterable[str] = (),
    zookeepers: int = 0,
    *,
    ensemble_over_tls: bool = False,
) -> PlaygroundState:
    """A description with ports still 0. One controller is combined with broker 1, more are nodes of their own.

    With ``zookeepers`` there are no controllers, whatever their number.
    """
    count = brokers if brokers is not None else len(racks or DEFAULT_RACKS)
    if count < 1 or controllers < 1 or dirs < 1:
        raise ServerError(PlaygroundErrorCode.PLAYGROUND_TOO_SMALL)
    chosen = tuple(racks) if racks is not None else tuple(DEFAULT_RACKS[i % len(DEFAULT_RACKS)] for i in range(count))
    if len(chosen) != count:
        raise ServerError(
            PlaygroundErrorCode.RACKS_DO_NOT_FIT, brokers=count, racks=len(chosen), given=",".join(chosen)
        )
    combined = controllers == 1 and not zookeepers
    further = dict.fromkeys(listeners, 0)
    nodes = [
        NodeState(
            i, 0, 0 if combined and i == 1 else None, rack, new_id() if combined and i == 1 else None, dict(further)
        )
        for i, rack in enumerate(chosen, 1)
    ]
    if not combined and not zookeepers:
        nodes += [NodeState(FIRST_CONTROLLER_ID + i, None, 0, None, new_id()) for i in range(controllers)]
    secure_port = 0 if ensemble_over_tls else None
    servers = tuple(ZooKeeperState(number, 0, 0, 0, secure_port) for number in range(1, zookeepers + 1))
    return PlaygroundState(new_id(), dirs, tuple(nodes), zookeepers=servers)


def grow_cluster(cluster: PlaygroundState, rack: str | None) -> PlaygroundState:
    """With one more broker, the last of `added`, its ports still 0. Its id is above the brokers' and no other's."""
    ids = {node.node_id for node in cluster.nodes}
    last = max(node.node_id for node in cluster.brokers)
    new = next(i for i in range(last + 1, last + len(ids) + 2) if i not in ids)
    node = NodeState(new, 0, None, rack or None, None, dict.fromkeys(cluster.brokers[0].secured_ports, 0))
    nodes = tuple(sorted([*cluster.nodes, node], key=lambda node: node.node_id))
    return replace(cluster, nodes=nodes, added=(*cluster.added, new))


def find_difference(
    cluster: PlaygroundState,
    brokers: int | None,
    racks: Sequence[str] | None,
    controllers: int | None,
    dirs: int | None,
    zookeepers: int | None = None,
) -> tuple[str, object, object] | None:
    """Return (name, actual, wanted) of the first difference, None if there is none; a None argument matches anything.

    The brokers at creation are accepted as well, because brokers that were added are never removed.
    """
    wanted = (brokers, ",".join(racks) if racks is not None else None, controllers, dirs, zookeepers)
    found = None
    for nodes in (cluster.made_with, cluster.brokers):
        racks_present = ",".join(node.rack or "" for node in nodes)
        present = (len(nodes), racks_present, len(cluster.controllers), cluster.dirs, len(cluster.zookeepers))
        names = ("brokers", "racks", "controllers", "log directories", "ZooKeeper servers")
        rows = zip(names, present, wanted, strict=True)
        found = next((row for row in rows if row[2] is not None and row[1] != row[2]), None)
        if found is None:
            break
    return found


def choose_ports(cluster: PlaygroundState, keep: set[str]) -> PlaygroundState:
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

    servers = tuple(
        ZooKeeperState(
            server.server_id,
            choose(server.client_port, server.name) or 0,
            choose(server.peer_port, server.name) or 0,
            choose(server.election_port, server.name) or 0,
            choose(server.secure_port, server.name),
        )
        for server in cluster.zookeepers
    )
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
    return replace(cluster, nodes=nodes, zookeepers=servers)


def read_cluster(folder: Path) -> PlaygroundState | None:
    """The folder's cluster, None when there is none yet."""
    path = PlaygroundLayout(folder).state
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["format"] != STATE_FORMAT:
            raise ServerError(PlaygroundErrorCode.PLAYGROUND_UNREADABLE, file=path, fault="written by another version")
        nodes = tuple(NodeState(**node) for node in document["nodes"])
        servers = tuple(ZooKeeperState(**server) for server in document.get("zookeepers", ()))
        added = tuple(document.get("added", ()))
        return PlaygroundState(document["cluster_id"], document["dirs"], nodes, added, servers)
    except (FileNotFoundError, NotADirectoryError):  # where there cannot be a folder, that is said by who makes one
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ServerError(PlaygroundErrorCode.PLAYGROUND_UNREADABLE, file=path, fault=error) from error


def write_cluster(folder: Path, cluster: PlaygroundState) -> None:
    document = {"format": STATE_FORMAT, **asdict(cluster)}
    write_atomically(PlaygroundLayout(folder).state, json.dumps(document, indent=1) + "\n")


IDENTITY = "meta.properties"
BOOTSTRAP = "bootstrap.checkpoint"
METADATA_TOPIC = "__cluster_metadata-0"


def format_nodes(
    cluster: PlaygroundState, layout: PlaygroundLayout, runtime: KafkaRuntime, more: Sequence[str] = ()
) -> None:
    """Format the nodes that are not formatted yet; `more` goes to the storage tool.

    Raises ServerError when it refuses.
    """
    first = cluster.controllers[0]
    if not _is_formatted(layout, first):
        shutil.rmtree(layout.folder / "data", ignore_errors=True)
        voters = ",".join(
            f"{node.node_id}@{LOOPBACK}:{node.controller_port}:{node.directory_id}" for node in cluster.controllers
        )
        properties = layout.properties(first)
        runtime.format_storage(cluster.cluster_id, properties, ["--initial-controllers", voters, *more])
    template = layout.metadata_dir(first)
    for node in cluster.nodes:
        if not _is_formatted(layout, node):
            shutil.rmtree(layout.data(node), ignore_errors=True)
            _copy_identity(template, cluster, layout, node)


def _voters(cluster: PlaygroundState) -> list[str]:
    """Controllers as controller.quorum.voters names them."""
    return [f"{node.node_id}@{LOOPBACK}:{node.controller_port}" for node in cluster.controllers]


def _read_cluster_id(layout: PlaygroundLayout, cluster: PlaygroundState) -> str:
    """Return the id that a broker wrote into its folder, which comes from ZooKeeper."""
    identity = layout.log_dirs(cluster, cluster.brokers[0])[0] / IDENTITY
    lines = identity.read_text(encoding="ascii").splitlines()
    return next(line.removeprefix("cluster.id=") for line in lines if line.startswith("cluster.id="))


def _is_formatted(layout: PlaygroundLayout, node: NodeState) -> bool:
    return (layout.metadata_dir(node) / IDENTITY).exists()


def _copy_identity(template: Path, cluster: PlaygroundState, layout: PlaygroundLayout, node: NodeState) -> None:
    metadata = layout.metadata_dir(node)
    # The metadata folder comes last, its identity at its very end: a node without it counts as not formatted.
    for folder in dict.fromkeys([*layout.log_dirs(cluster, node), metadata]):
        folder.mkdir(parents=True)
        if (template / BOOTSTRAP).exists():  # since Kafka 4.4 it is in the controllers' log
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


BYTES_KEPT = 20_000_000


def rotated_size(log: Path) -> int:
    """Return the offset of this start's first line. A large log is put aside first; one generation is kept."""
    try:
        size = log.stat().st_size
    except FileNotFoundError:
        return 0
    if size <= BYTES_KEPT:
        return size
    log.replace(log.with_suffix(".old.log"))
    return 0


AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")


OAUTH = "org.apache.kafka.common.security.oauthbearer"


@dataclass(frozen=True, slots=True)
class TokenValidation:
    """Access tokens that a listener accepts (KIP-768): signed with a key of ``jwks_url``, with audience and issuer.

    A session ends after ``session_ms`` if the client does not authenticate again (KIP-368); 0 for never.
    """

    jwks_url: str
    audience: str
    issuer: str
    session_ms: int = 0

    def properties(self, prefix: str) -> dict[str, str]:
        return {
            f"{prefix}sasl.enabled.mechanisms": "OAUTHBEARER",
            f"{prefix}oauthbearer.sasl.jaas.config": f"{OAUTH}.OAuthBearerLoginModule required;",
            f"{prefix}oauthbearer.sasl.server.callback.handler.class": f"{OAUTH}.OAuthBearerValidatorCallbackHandler",
            f"{prefix}oauthbearer.sasl.oauthbearer.jwks.endpoint.url": self.jwks_url,
            f"{prefix}oauthbearer.sasl.oauthbearer.expected.audience": self.audience,
            f"{prefix}oauthbearer.sasl.oauthbearer.expected.issuer": self.issuer,
            f"{prefix}oauthbearer.connections.max.reauth.ms": str(self.session_ms),
        }


@dataclass(frozen=True, slots=True)
class KafkaListener:
    """``protocol`` is Kafka's (SSL, SASL_PLAINTEXT, SASL_SSL). With TLS: the broker's certificate and key as PEM.

    ``advertised_host`` is what the broker tells clients, loopback where empty. With ``tokens`` the only mechanism is
    OAUTHBEARER.
    """

    protocol: str
    certificate_pem: str = ""
    key_pem: str = ""
    advertised_host: str = ""
    tokens: TokenValidation | None = None


@dataclass(frozen=True, slots=True)
class SecuredListener:
    """``listeners`` by name (upper case). ``users`` are name → password, for PLAIN and for both kinds of SCRAM."""

    listeners: Mapping[str, KafkaListener]
    users: Mapping[str, str] = field(default_factory=dict)
    authorizer: bool = False

    def properties(self) -> dict[str, str]:
        """For every node, apart from its own addresses."""
        values: dict[str, str] = {}
        for name, listener in self.listeners.items():
            prefix = f"listener.name.{name.lower()}."
            if listener.protocol.endswith("SSL"):
                values[f"{prefix}ssl.keystore.type"] = "PEM"
                values[f"{prefix}ssl.keystore.certificate.chain"] = listener.certificate_pem
                values[f"{prefix}ssl.keystore.key"] = listener.key_pem
            if listener.tokens is not None:
                values |= listener.tokens.properties(prefix)
            elif listener.protocol.startswith("SASL"):
                values |= self._logins(prefix)
        if self.authorizer:
            values["authorizer.class.name"] = AUTHORIZER
            values["super.users"] = "User:ANONYMOUS"
        return values

    def java_flags(self) -> list[str]:
        """Kafka reads keys only from addresses that its process was started with."""
        urls = ",".join(listener.tokens.jwks_url for listener in self.listeners.values() if listener.tokens is not None)
        return [f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={urls}"] if urls else []

    def scram_arguments(self) -> list[str]:
        """For Kafka's storage tool: users that exist from the first record on."""
        return [
            part
            for name, password in self.users.items()
            for mechanism in SCRAM
            for part in ("--add-scram", f"{mechanism}=[name={name},password={password}]")
        ]

    def _logins(self, prefix: str) -> dict[str, str]:
        users = " ".join(f'user_{name}="{password}"' for name, password in self.users.items())
        scram = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        return {
            f"{prefix}sasl.enabled.mechanisms": ",".join(("PLAIN", *SCRAM)),
            f"{prefix}plain.sasl.jaas.config": (
                f"org.apache.kafka.common.security.plain.PlainLoginModule required {users};"
            ),
            **{f"{prefix}{mechanism.lower()}.sasl.jaas.config": scram for mechanism in SCRAM},
        }


# Values that differ from Kafka's defaults; on controllers too, where sessions and rebalancing are decided.
COMMON: Mapping[str, object] = {
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "auto.leader.rebalance.enable": "false",
    "broker.session.timeout.ms": 3000,
    "broker.heartbeat.interval.ms": 500,
    "initial.broker.registration.timeout.ms": 120000,
    "num.network.threads": 2,
    "num.io.threads": 2,
    "background.threads": 2,
    "log.cleaner.threads": 1,
    "log.cleaner.dedupe.buffer.size": 2097152,
    "replica.lag.time.max.ms": 3000,
    "log.segment.bytes": 16777216,
    "log.retention.check.interval.ms": 15000,
    "log.segment.delete.delay.ms": 1000,
    "offsets.topic.num.partitions": 6,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "transaction.state.log.num.partitions": 2,
    "share.coordinator.state.topic.replication.factor": 1,
    "share.coordinator.state.topic.min.isr": 1,
    "share.coordinator.state.topic.num.partitions": 2,
    "group.initial.rebalance.delay.ms": 0,
    "group.streams.initial.rebalance.delay.ms": 0,
    "auto.create.topics.enable": "false",
}
BROKER: Mapping[str, object] = {
    "inter.broker.listener.name": "PLAINTEXT",
    "num.replica.fetchers": 1,
    "replica.fetch.wait.max.ms": 200,
    "num.recovery.threads.per.data.dir": 1,
    "controlled.shutdown.enable": "true",
}


ZOOKEEPER_SESSION_MS = 3000
# Keys of COMMON that a broker outside a quorum refuses.
QUORUM_ONLY = frozenset({"controller.listener.names"})
MIGRATION_LEVEL = "3.9"
"""inter.broker.protocol.version of brokers that migrate to KRaft."""


@dataclass(frozen=True, slots=True)
class SecuredEnsemble:
    """ZooKeeper servers that clients reach over TLS too: their certificate and key (PKCS 8), as PEM."""

    certificate_pem: str
    key_pem: str


def ensemble_properties(
    server: ZooKeeperState, servers: Sequence[ZooKeeperState], data: Path, keys: Path | None = None
) -> str:
    """The properties file of a ZooKeeper server; one that is alone has no ensemble.

    ``keys``: a PEM file with certificate and key, for a server that has a secure port.
    """
    values: dict[str, object] = {
        "dataDir": data,
        "clientPort": server.client_port,
        "clientPortAddress": LOOPBACK,
        "tickTime": 500,
        "maxClientCnxns": 0,
        "admin.enableServer": "false",
        "4lw.commands.whitelist": "*",
    }
    if len(servers) > 1:
        values |= {"initLimit": 20, "syncLimit": 10}
        values |= {f"server.{each.server_id}": f"{LOOPBACK}:{each.peer_port}:{each.election_port}" for each in servers}
    if server.secure_port is not None:
        values |= {
            "secureClientPort": server.secure_port,
            "secureClientPortAddress": LOOPBACK,
            "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
            "ssl.keyStore.location": keys,
            "ssl.keyStore.type": "PEM",
            "ssl.clientAuth": "none",
        }
    return "".join(f"{key}={_escape_property(str(value))}\n" for key, value in values.items())


def node_properties(
    *,
    node_id: int,
    broker_port: int | None,
    controller_port: int | None,
    rack: str | None,
    log_dirs: list[Path],
    metadata_dir: Path,
    controller_ports: list[int],
    brokers: int,
    secured: SecuredListener | None = None,
    secured_ports: Mapping[str, int] | None = None,
    zookeeper: str = "",
    migrating_to: Sequence[str] = (),
    further: Mapping[str, object] | None = None,
) -> str:
    """The properties file of one node. A node with both ports is a combined broker and controller.

    ``zookeeper``: addresses of the ensemble; the node is a broker that uses it. ``migrating_to``: voters
    (``id@host:port``) of the controllers that take its cluster over, of which the node may be one. ``further``
    properties replace others.
    """
    listeners = []
    advertised = []
    roles = []
    values: dict[str, object] = {"node.id": node_id, **COMMON}
    if broker_port is not None:
        roles.append("broker")
        listeners.append(f"PLAINTEXT://{LOOPBACK}:{broker_port}")
        values.update(BROKER)
        if rack is not None:
            values["broker.rack"] = rack
    if controller_port is not None:
        roles.append("controller")
        listeners.append(f"CONTROLLER://{LOOPBACK}:{controller_port}")
    advertised += listeners
    if secured is not None:
        values |= secured.properties()
        values["listener.security.protocol.map"] = ",".join(
            [
                str(COMMON["listener.security.protocol.map"]),
                *(f"{name}:{listener.protocol}" for name, listener in secured.listeners.items()),
            ]
        )
        for name, port in (secured_ports or {}).items():
            listeners.append(f"{name}://{LOOPBACK}:{port}")
            advertised.append(f"{name}://{secured.listeners[name].advertised_host or LOOPBACK}:{port}")
    if zookeeper:
        values |= {"zookeeper.connect": zookeeper, "zookeeper.session.timeout.ms": ZOOKEEPER_SESSION_MS}
    if migrating_to:
        values |= {
            **BROKER,
            "zookeeper.metadata.migration.enable": "true",
            "controller.quorum.voters": ",".join(migrating_to),
            "inter.broker.protocol.version": MIGRATION_LEVEL,
        }
    elif zookeeper:
        values = {key: value for key, value in values.items() if key not in QUORUM_ONLY}
        protocols = str(values["listener.security.protocol.map"])
        values["listener.security.protocol.map"] = protocols.removeprefix("CONTROLLER:PLAINTEXT,")
    if not zookeeper or controller_port is not None:
        values["process.roles"] = ",".join(roles)
        values["metadata.log.dir"] = metadata_dir
    if not zookeeper:
        addresses = ",".join(f"{LOOPBACK}:{port}" for port in controller_ports)
        values["controller.quorum.bootstrap.servers"] = addresses
    values["listeners"] = ",".join(listeners)
    values["advertised.listeners"] = ",".join(advertised)
    values["log.dirs"] = ",".join(str(folder) for folder in log_dirs)
    values["offsets.topic.replication.factor"] = min(3, brokers)
    values |= further or {}
    return "".join(f"{key}={_escape_property(str(value))}\n" for key, value in values.items())


def _escape_property(value: str) -> str:
    """Java reads properties as ISO-8859-1 with backslash escapes, here UTF-16 units for everything beyond ASCII."""
    units = value.replace("\\", "\\\\").replace("\n", "\\n").encode("utf-16-be")
    codes = [int.from_bytes(units[i : i + 2], "big") for i in range(0, len(units), 2)]
    return "".join(chr(code) if code < 0x7F else f"\\u{code:04x}" for code in codes)


TRAINING_SECONDS = 60.0
# A node's line of log once it serves (classes kafka.server.KafkaRaftServer, kafka.server.KafkaServer).
STARTED = re.compile(rb"Kafka Server started|\[KafkaServer id=\d+\] started")

_guard = threading.Lock()
_prepared: dict[Path, KafkaRuntime] = {}
_releases: dict[tuple[Path, Path], KafkaRuntime] = {}


def prepare_runtime(say: Callable[[str], None]) -> KafkaRuntime:
    """Return the runtime of Kafka's processes; it is fetched and recorded at the first call on a machine.

    Checked once per process and cache folder. Raises ServerError (network, disk, no Java).
    """
    cache = jars.cache_dir()
    with _guard:
        runtime = _prepared.get(cache)
        if runtime is None:
            runtime = _prepared[cache] = _prepare_runtime(cache, say)
        return runtime


def prepare_release(lock: Path, say: Callable[[str], None]) -> KafkaRuntime:
    """Return the runtime of another release, whose jars a lock file names. No class archive is recorded for it.

    Raises ServerError (network, disk, no Java).
    """
    cache = jars.cache_dir()
    with _guard:
        if (cache, lock) not in _releases:
            distribution = jars.fetch(lock, cache, lambda progress: _tell_progress(say, progress))
            _releases[cache, lock] = KafkaRuntime(find_java(), distribution, cache / "no-archive")
        return _releases[cache, lock]


def serves_zookeeper(port: int) -> Callable[[], bool]:
    """Return a check whether a ZooKeeper server answers its clients: one without a quorum does not."""

    def check() -> bool:
        try:
            with socket.create_connection((LOOPBACK, port), timeout=1.0) as connection:
                connection.sendall(b"srvr")
                return b"Mode: " in connection.recv(4096)
        except OSError:
            return False

    return check


def says_started(log: Path, offset: int = 0) -> Callable[[], bool]:
    """Return a check whether a node's log says, after `offset` bytes, that the node serves."""

    def check() -> bool:
        with log.open("rb") as file:
            file.seek(offset)
            return STARTED.search(file.read()) is not None

    return check


def _prepare_runtime(cache: Path, say: Callable[[str], None]) -> KafkaRuntime:
    java = find_java()
    distribution = jars.fetch(cache=cache, progress=lambda progress: _tell_progress(say, progress))
    runtime = KafkaRuntime(java, distribution, archive_path(java, distribution, cache))
    failed = runtime.archive.with_suffix(".failed")
    if not runtime.archive.exists() and not failed.exists():
        say(f"Java {java.major}: creating a class archive (once) for faster starts of Kafka")
        try:
            with lock_file(cache / "archive.lock"):
                if not runtime.archive.exists():
                    _record_archive(runtime, cache)
        except (ServerError, OSError) as error:
            # Kafka runs without it, only slower; the note keeps every later command from trying again.
            say(message_text(PlaygroundErrorCode.NO_CLASS_ARCHIVE, version=java.major, fault=error))
            with contextlib.suppress(OSError):
                failed.write_text(f"{error}\n", encoding="utf-8")
    return runtime


def _tell_progress(say: Callable[[str], None], progress: jars.DownloadProgress) -> None:
    if progress.done % 5 == 0 or progress.done == progress.total:
        say(f"Kafka's jars: {progress.done} of {progress.total} downloaded, {progress.bytes / 1e6:.1f} MB")


def _record_archive(runtime: KafkaRuntime, cache: Path) -> None:
    """Run one throw-away node until it serves, end it, keep the archive that Java writes while it ends."""
    state = cache / "training"
    reap_leftovers(state)
    shutil.rmtree(state, ignore_errors=True)
    state.mkdir(parents=True)
    runtime.archive.parent.mkdir(exist_ok=True)
    try:
        with tempfile.TemporaryDirectory(dir=state) as folder:
            recorded = Path(folder) / runtime.archive.name
            log = state / "node.log"
            child = _start_node(runtime, state, Path(folder), recorded, log)
            try:
                child.wait_ready(says_started(log), TRAINING_SECONDS)
            finally:
                child.stop(TRAINING_SECONDS)
            if not recorded.exists():
                raise ServerError(PlaygroundErrorCode.ARCHIVE_NOT_WRITTEN)
            for old in runtime.archive.parent.glob(f"{runtime.archive.name.rsplit('-', 1)[0]}-*"):
                old.unlink(missing_ok=True)
            recorded.replace(runtime.archive)
    finally:
        shutil.rmtree(state, ignore_errors=True)


def _start_node(runtime: KafkaRuntime, state: Path, folder: Path, recorded: Path, log: Path) -> ChildProcess:
    broker_port = free_port()
    controller_port = free_port(taken={broker_port})
    properties = folder / "node.properties"
    text = node_properties(
        node_id=1,
        broker_port=broker_port,
        controller_port=controller_port,
        rack=None,
        log_dirs=[folder / "logs"],
        metadata_dir=folder / "metadata",
        controller_ports=[controller_port],
        brokers=1,
    )
    properties.write_text(text, encoding="utf-8")
    voter = f"1@127.0.0.1:{controller_port}:{new_id()}"
    runtime.format_storage(new_id(), properties, ["--initial-controllers", voter])
    command = runtime.server_command(properties, record=recorded)
    return spawn(state, "class archive", command, log=log)


# The name without "kafka-" and ".sh" where people know it, → main class.
TOOLS = MappingProxyType(
    {
        "reassign": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
        "configs": "kafka.admin.ConfigCommand",
        "quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
        "log-dirs": "org.apache.kafka.tools.LogDirsCommand",
        "get-offsets": "org.apache.kafka.tools.GetOffsetShell",
        "topics": "org.apache.kafka.tools.TopicCommand",
        "consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
        "groups": "org.apache.kafka.tools.GroupsCommand",
        "share-groups": "org.apache.kafka.tools.consumer.group.ShareGroupCommand",
        "streams-groups": "org.apache.kafka.tools.streams.StreamsGroupCommand",
        "transactions": "org.apache.kafka.tools.TransactionsCommand",
        "leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
        "cluster": "org.apache.kafka.tools.ClusterTool",
        "features": "org.apache.kafka.tools.FeatureCommand",
    }
)
ADDRESS_FLAGS = ("--bootstrap-server", "--bootstrap-controller")


def run_tool(
    name: str, args: Sequence[str], bootstrap: str, *, timeout: float | None = 120.0
) -> subprocess.CompletedProcess[str]:
    """Run a tool and return its exit code, standard output and standard error as they are.

    `bootstrap` is passed as --bootstrap-server unless `args` name an address. Raises ServerError for an unknown name
    or when the tool does not end within `timeout` seconds (it is killed then).
    """
    main_class = TOOLS.get(name)
    if main_class is None:
        raise ServerError(PlaygroundErrorCode.TOOL_UNKNOWN, name=name, known=", ".join(TOOLS))
    address = [] if any(arg.split("=")[0] in ADDRESS_FLAGS for arg in args) else ["--bootstrap-server", bootstrap]
    # The cluster tool takes the address as an option of its subcommand, the others before theirs.
    full = [*args, *address] if name == "cluster" else [*address, *args]
    runtime = prepare_runtime(lambda _: None)
    try:
        return runtime.run_class(main_class, full, timeout)
    except subprocess.TimeoutExpired as error:
        raise ServerError(ServerErrorCode.PROGRAM_TOO_SLOW, program=f"Kafka's {name} tool", seconds=timeout) from error


READY_SECONDS = 90.0
STOP_SECONDS = 20.0
ZOOKEEPER_CLASS = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
VOTER_STOP_SECONDS = 1.0
# Brokers go before controllers: a broker that finds no controller takes 25 s to give up.
BROKER_STAGE, COMBINED_STAGE, VOTER_STAGE, ZOOKEEPER_STAGE = 0, 1, 2, 3


@dataclass(frozen=True, slots=True)
class PlaygroundNodeStatus:
    """`pid` and `memory_bytes` (resident) are None when the node does not run; ports are loopback TCP ports."""

    node_id: int
    roles: str
    rack: str | None
    broker_port: int | None
    controller_port: int | None
    pid: int | None
    memory_bytes: int | None
    log: Path


@dataclass(frozen=True, slots=True)
class UpReport:
    """How a start went: `seconds` for all nodes together; fetching and other one-time preparation is apart."""

    seconds: float
    prepare_seconds: float
    nodes: tuple[PlaygroundNodeStatus, ...]
    bootstrap: str


class KafkaPlayground:
    """Kafka cluster in one playground folder. Creating the object does nothing; see the module's text.

    `secured` gives the brokers of a new cluster further listeners, `ensemble` its ZooKeeper servers a port for TLS;
    both are to be given again for the same folder.
    `detached` nodes outlive this process (the command line); otherwise they belong to it, and another process that
    calls `up` on the folder is told so. `say` gets one readable line for each step. `lock` names the jars of another
    release, for nodes that start from now on; Kafka's tools stay those of ours. `properties` come last in the
    properties of each node.
    """

    def __init__(
        self,
        folder: Path,
        *,
        detached: bool = False,
        say: Callable[[str], None] | None = None,
        secured: SecuredListener | None = None,
        lock: Path | None = None,
        ensemble: SecuredEnsemble | None = None,
        properties: Mapping[str, object] | None = None,
    ) -> None:
        self.lock = lock
        self._ensemble = ensemble
        self._properties = properties or {}
        self.folder = folder.absolute()
        self.detached = detached
        self.secured = secured
        self.layout = PlaygroundLayout(self.folder)
        self._say = say or (lambda _: None)

    def up(
        self,
        brokers: int | None = None,
        racks: Sequence[str] | None = None,
        controllers: int | None = None,
        dirs: int | None = None,
        zookeepers: int | None = None,
    ) -> UpReport:
        """Start the folder's cluster, making it first if there is none, and return when every broker serves.

        Options left out mean: as the folder's cluster is, else 5 brokers in racks a,a,b,b,c, one combined controller
        (none where there are ``zookeepers``), one log directory. Brokers that were added to it since start too. Raises
        ServerError with a sentence; nodes started by a failed call are stopped, logs stay.
        """
        began = time.monotonic()
        if "," in str(self.folder):
            raise ServerError(PlaygroundErrorCode.PLAYGROUND_HAS_COMMA, folder=self.folder)
        cluster = self._existing(brokers, racks, controllers, dirs, zookeepers)
        with_zookeeper = bool(cluster.zookeepers if cluster else zookeepers)
        runtime = self._prepare_runtime(with_zookeeper=with_zookeeper)
        prepared = time.monotonic()
        if not self.detached:
            reap_leftovers(self.folder, STOP_SECONDS, names=set(self._live()))
        if cluster is None:
            # What an interrupted first start may have left carries ids that nobody knows any more.
            shutil.rmtree(self.folder / "data", ignore_errors=True)
            further = self.secured.listeners if self.secured else ()
            cluster = new_cluster(
                brokers,
                racks,
                controllers or 1,
                dirs or 1,
                further,
                zookeepers or 0,
                ensemble_over_tls=self._ensemble is not None,
            )
        cluster = self._configure(choose_ports(cluster, set(self._live())), runtime)
        running = self._live()
        self._join([node for node in cluster.nodes if node.name not in running], cluster, cluster.brokers, runtime)
        if cluster.zookeepers:
            cluster = replace(cluster, cluster_id=_read_cluster_id(self.layout, cluster))
            write_cluster(self.folder, cluster)
        report = UpReport(time.monotonic() - prepared, prepared - began, tuple(self.status()), cluster.bootstrap)
        self._say(f"Kafka: {len(cluster.brokers)} brokers ready in {report.seconds:.1f} s at {cluster.bootstrap}")
        return report

    def add_broker(self, rack: str | None = None) -> int:
        """Give the running cluster a broker more; its id, when it serves. It stays one of the folder's cluster.

        It is remembered before it is started: where this call is killed in between, `up` or `start_broker` starts it,
        as it does after a start that failed. Raises ServerError.
        """
        cluster, live = self.cluster, self._live()
        serving = sum(node.name in live for node in cluster.controllers)
        if cluster.controllers and serving * 2 <= len(cluster.controllers):
            raise ServerError(PlaygroundErrorCode.NOBODY_TO_JOIN, running=serving, all=len(cluster.controllers))
        runtime = self._prepare_runtime(with_zookeeper=bool(cluster.zookeepers))
        cluster = self._configure(choose_ports(grow_cluster(cluster, rack), set(live)), runtime)
        node = _pick(cluster.added[-1], cluster.brokers, "broker")
        try:
            self._join([node], cluster, [node], runtime)
        except ServerError as error:
            raise ServerError(PlaygroundErrorCode.ADDED_BUT_NOT_STARTED, broker=node.node_id, fault=error) from error
        self._say(f"Kafka: broker {node.node_id} is ready and has no replicas yet")
        return node.node_id

    def begin_migration(self) -> int:
        """Add a controller to a running cluster with ZooKeeper (KIP-866); the controller's id.

        It takes over once all brokers know it, which they do from their next start on. They keep using ZooKeeper.
        Raises ServerError.
        """
        runtime = self._prepare_runtime(with_zookeeper=True)
        controller = NodeState(FIRST_CONTROLLER_ID, None, 0, None, None)
        cluster = replace(self.cluster, nodes=(*self.cluster.nodes, controller))
        self._configure(choose_ports(cluster, set(self._live())), runtime)
        self._start(self.cluster.controllers, runtime)
        return controller.node_id

    def down(self) -> None:
        """Stop all nodes: brokers first, then controllers.

        Of several controllers the leader waits 5 s for a successor that cannot come. Everything a controller has
        acknowledged is on its disk, so it is not left to wait.
        """
        nodes = self._recorded()
        stop_all([child for child in nodes if child.entry.stage < VOTER_STAGE], STOP_SECONDS)
        stop_all([child for child in nodes if child.entry.stage >= VOTER_STAGE], VOTER_STOP_SECONDS)

    def reset(self) -> None:
        """Stop all nodes and remove the cluster: its data, configuration and logs."""
        self.down()
        for name in ("data", "config", "logs"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        self.layout.state.unlink(missing_ok=True)

    def status(self) -> list[PlaygroundNodeStatus]:
        """Every node of the folder's cluster, running or not."""
        live = self._live()
        return [self._node_status(node, live.get(node.name)) for node in self.cluster.nodes]

    @property
    def cluster(self) -> PlaygroundState:
        """The folder's cluster; ServerError when there is none yet."""
        cluster = read_cluster(self.folder)
        if cluster is None:
            raise ServerError(PlaygroundErrorCode.NO_PLAYGROUND, folder=self.folder)
        return cluster

    @property
    def bootstrap(self) -> str:
        """All brokers, host:port joined by commas."""
        return self.cluster.bootstrap

    def stop_broker(self, node_id: int) -> None:
        """Orderly stop: the broker hands its leaderships over first."""
        self._running(self._broker(node_id)).stop(STOP_SECONDS)

    def kill_broker(self, node_id: int) -> None:
        """SIGKILL; the cluster notices after the session timeout of 3 s."""
        self._running(self._broker(node_id)).kill()

    def start_broker(self, node_id: int) -> None:
        """Start a stopped broker and return when it serves."""
        self._start_again(self._broker(node_id))

    def kill_controller(self, node_id: int) -> None:
        """SIGKILL to a controller (a combined node loses its broker too)."""
        self._running(self._controller(node_id)).kill()

    def start_controller(self, node_id: int) -> None:
        """Start a stopped controller and return when it serves."""
        self._start_again(self._controller(node_id))

    def launch(self, node_id: int) -> tuple[ChildProcess, Callable[[], bool]]:
        """Start a stopped node where it was, without waiting; its process, and what tells whether it serves.

        For who keeps nodes alive while others are away: a broker serves only when a controller does.
        """
        node = _pick(node_id, list(self.cluster.nodes), "node")
        if node.name in self._live():
            raise ServerError(PlaygroundErrorCode.NODE_RUNS, node=node.node_id)
        stop_all([child for child in self._recorded() if child.name == node.name])  # its entry, when it crashed
        return self._spawn(node, self._prepare_runtime(with_zookeeper=bool(self.cluster.zookeepers)))

    def kill_zookeeper(self, server_id: int) -> None:
        """SIGKILL to a server of the ensemble."""
        child = self._live().get(self._zookeeper(server_id).name)
        if child is None:
            raise ServerError(PlaygroundErrorCode.NODE_DOES_NOT_RUN, node=server_id)
        child.kill()

    def start_zookeeper(self, server_id: int) -> None:
        """Start a server of the ensemble again and return when it serves."""
        stop_all([child for child in self._recorded() if not child.alive()])
        self._start_ensemble([self._zookeeper(server_id)], self._prepare_runtime(with_zookeeper=True))

    def process(self, node_id: int) -> ChildProcess:
        """The running process of a broker or controller, for tests that stop or freeze it."""
        return self._running(_pick(node_id, list(self.cluster.nodes), "node"))

    def tool(self, name: str, args: Sequence[str], timeout: float | None = 120.0) -> subprocess.CompletedProcess[str]:
        """Run one of Kafka's own commands against this cluster; see `tool.run_tool`."""
        return run_tool(name, args, self.bootstrap, timeout=timeout)

    # --- making and starting ---

    def _prepare_runtime(self, *, with_zookeeper: bool) -> KafkaRuntime:
        lock = jars.ZOOKEEPER_LOCK if with_zookeeper else self.lock
        return prepare_runtime(self._say) if lock is None else prepare_release(lock, self._say)

    def _existing(
        self,
        brokers: int | None,
        racks: Sequence[str] | None,
        controllers: int | None,
        dirs: int | None,
        zookeepers: int | None,
    ) -> PlaygroundState | None:
        cluster = read_cluster(self.folder)
        if cluster is None:
            return None
        if other := find_difference(cluster, brokers, racks, controllers, dirs, zookeepers):
            what, have, want = other
            raise ServerError(
                PlaygroundErrorCode.PLAYGROUND_IS_OTHER, folder=self.folder, what=what, have=have, want=want
            )
        return cluster

    def _configure(self, cluster: PlaygroundState, runtime: KafkaRuntime) -> PlaygroundState:
        try:
            for name in ("config", "logs"):
                (self.folder / name).mkdir(parents=True, exist_ok=True)
            for node in cluster.nodes:
                text = node_properties(
                    node_id=node.node_id,
                    broker_port=node.broker_port,
                    controller_port=node.controller_port,
                    rack=node.rack,
                    log_dirs=self.layout.log_dirs(cluster, node),
                    metadata_dir=self.layout.metadata_dir(node),
                    controller_ports=[controller.controller_port or 0 for controller in cluster.controllers],
                    brokers=len(cluster.brokers),
                    secured=self.secured,
                    secured_ports=node.secured_ports,
                    zookeeper=cluster.zookeeper,
                    migrating_to=_voters(cluster) if cluster.zookeepers else (),
                    further=self._properties,
                )
                write_atomically(self.layout.properties(node), text)
            for server in cluster.zookeepers:
                data = self.layout.data(server)
                text = ensemble_properties(server, cluster.zookeepers, data, self._write_keys(server))
                write_atomically(self.layout.properties(server), text)
                data.mkdir(parents=True, exist_ok=True)
                (data / "myid").write_text(f"{server.server_id}\n", encoding="ascii")
            if not cluster.zookeepers:
                format_nodes(cluster, self.layout, runtime, self.secured.scram_arguments() if self.secured else ())
            for node in cluster.controllers if cluster.zookeepers else ():
                if not _is_formatted(self.layout, node):
                    runtime.format_storage(cluster.cluster_id, self.layout.properties(node), ())
            # Only a cluster that was formatted is remembered: ids in this file and on the disk always agree.
            write_cluster(self.folder, cluster)
        except OSError as error:
            raise ServerError(
                ServerErrorCode.FILES_NOT_WRITTEN, files="The playground's files", folder=self.folder, fault=error
            ) from error
        return cluster

    def _write_keys(self, server: ZooKeeperState) -> Path | None:
        """Return the file with the certificate and key of a ZooKeeper server, None where it has no secure port."""
        if self._ensemble is None or server.secure_port is None:
            return None
        path = self.layout.properties(server).with_suffix(".pem")
        write_atomically(path, self._ensemble.certificate_pem + self._ensemble.key_pem)
        return path

    def _join(
        self, nodes: Sequence[NodeState], cluster: PlaygroundState, expected: Sequence[NodeState], runtime: KafkaRuntime
    ) -> None:
        """Start nodes and return when the cluster lists the expected brokers; stop them again when it does not."""
        started = self._start(nodes, runtime)
        try:
            wait_for_brokers(cluster.bootstrap, [node.node_id for node in expected], READY_SECONDS)
        except BaseException:
            stop_all(started, STOP_SECONDS)
            raise

    def _start(self, nodes: Sequence[NodeState], runtime: KafkaRuntime) -> list[ChildProcess]:
        """Start nodes and return when they serve; stop them again when one does not.

        Controllers without a broker serve before any broker starts. While several of them elect for the first time,
        what one leader wrote may be taken back by the next, and a broker that had read who the voters are by then does
        not read it again (Kafka 4.3.1, KRaftControlRecordStateMachine, truncateNewEntries): it does not get to serve,
        or finds no controller any more when the leader changes next.
        """
        stop_all([child for child in self._recorded() if not child.alive()])  # their entries, when they crashed
        self._start_ensemble([each for each in self.cluster.zookeepers if each.name not in self._live()], runtime)
        voters = [node for node in nodes if node.broker_port is None]
        started: list[ChildProcess] = []
        try:
            for together in (voters, [node for node in nodes if node not in voters]):
                pending = []
                # A combined node first: a broker that comes before it waits and retries.
                for node in sorted(together, key=lambda node: node.controller_port is None):
                    pending.append(self._spawn(node, runtime))
                    started.append(pending[-1][0])
                wait_all(pending, READY_SECONDS)
        except BaseException:
            stop_all(started, STOP_SECONDS)
            raise
        return started

    def _start_ensemble(self, servers: Sequence[ZooKeeperState], runtime: KafkaRuntime) -> None:
        """Start servers of ZooKeeper and return when they serve; stop them again when one does not."""
        pending = []
        try:
            for server in servers:
                command = runtime.server_command(self.layout.properties(server), main_class=ZOOKEEPER_CLASS)
                log = self.layout.log(server.name)
                rotated_size(log)
                child = spawn(self.folder, server.name, command, log=log, stage=ZOOKEEPER_STAGE, detached=self.detached)
                pending.append((child, serves_zookeeper(server.client_port)))
            wait_all(pending, READY_SECONDS)
        except BaseException:
            stop_all([child for child, _ in pending], VOTER_STOP_SECONDS)
            raise

    def _spawn(self, node: NodeState, runtime: KafkaRuntime) -> tuple[ChildProcess, Callable[[], bool]]:
        """The node's process, and what tells whether it serves."""
        log = self.layout.log(node.name)
        offset = rotated_size(log)
        child = spawn(
            self.folder,
            node.name,
            runtime.server_command(
                self.layout.properties(node), extra=self.secured.java_flags() if self.secured is not None else ()
            ),
            log=log,
            stage=_start_stage(node),
            detached=self.detached,
        )
        return child, says_started(log, offset)

    def _start_again(self, node: NodeState) -> None:
        if node.name in self._live():
            raise ServerError(PlaygroundErrorCode.NODE_RUNS, node=node.node_id)
        cluster = self.cluster
        runtime = self._prepare_runtime(with_zookeeper=bool(cluster.zookeepers))
        others = {other.name for other in cluster.nodes} | {server.name for server in cluster.zookeepers}
        self._configure(choose_ports(cluster, others - {node.name}), runtime)
        self._start([node], runtime)

    # --- looking up ---

    def _recorded(self) -> list[ChildProcess]:
        """Nodes in the folder's ledger, also crashed ones; its other processes are not this class's business."""
        return [
            ChildProcess(child.state_dir, child.entry, self.layout.log(child.name))
            for child in recorded(self.folder)
            if NODE_NAME.fullmatch(child.name)
        ]

    def _live(self) -> dict[str, ChildProcess]:
        """Running nodes by name."""
        return {child.name: child for child in self._recorded() if child.alive()}

    def _broker(self, node_id: int) -> NodeState:
        return _pick(node_id, self.cluster.brokers, "broker")

    def _controller(self, node_id: int) -> NodeState:
        return _pick(node_id, self.cluster.controllers, "controller")

    def _zookeeper(self, server_id: int) -> ZooKeeperState:
        for server in self.cluster.zookeepers:
            if server.server_id == server_id:
                return server
        known = ", ".join(str(server.server_id) for server in self.cluster.zookeepers)
        raise ServerError(PlaygroundErrorCode.NODE_UNKNOWN, role="ZooKeeper server", node=server_id, known=known)

    def _running(self, node: NodeState) -> ChildProcess:
        child = self._live().get(node.name)
        if child is None:
            raise ServerError(PlaygroundErrorCode.NODE_DOES_NOT_RUN, node=node.node_id)
        return child

    def _node_status(self, node: NodeState, child: ChildProcess | None) -> PlaygroundNodeStatus:
        return PlaygroundNodeStatus(
            node_id=node.node_id,
            roles=node.roles,
            rack=node.rack,
            broker_port=node.broker_port,
            controller_port=node.controller_port,
            pid=child.pid if child is not None else None,
            memory_bytes=child.memory_bytes() if child is not None else None,
            log=self.layout.log(node.name),
        )


def _pick(node_id: int, nodes: list[NodeState], role: str) -> NodeState:
    for node in nodes:
        if node.node_id == node_id:
            return node
    known = ", ".join(str(node.node_id) for node in nodes)
    raise ServerError(PlaygroundErrorCode.NODE_UNKNOWN, role=role, node=node_id, known=known)


def _start_stage(node: NodeState) -> int:
    if node.controller_port is None:
        return BROKER_STAGE
    return COMBINED_STAGE if node.broker_port is not None else VOTER_STAGE


@contextmanager
def running_playground(
    folder: Path,
    *,
    brokers: int = 3,
    racks: Sequence[str] = ("a", "b", "c"),
    controllers: int = 1,
    dirs: int = 1,
    zookeepers: int | None = None,
) -> Iterator[KafkaPlayground]:
    """Brokers that serve; stopped when the block ends, however it ends. Data go then, logs stay in the folder.

    Raises ServerError when the cluster does not start.
    """
    playground = KafkaPlayground(folder)
    try:
        playground.up(brokers=brokers, racks=racks, controllers=controllers, dirs=dirs, zookeepers=zookeepers)
        yield playground
    finally:
        playground.down()
        shutil.rmtree(playground.folder / "data", ignore_errors=True)
