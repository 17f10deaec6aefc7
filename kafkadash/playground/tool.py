"""Kafka's own command-line tools, from the same jars as the brokers."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from types import MappingProxyType

from kafkadash.embedded.errors import ServerErrorCode
from kafkadash.embedded.process import ServerError
from kafkadash.playground.errors import PlaygroundErrorCode
from kafkadash.playground.prepare import prepare_runtime

# The name without "kafka-" and ".sh" where people know it, → main class.
TOOLS = MappingProxyType(
    {
        "reassign": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
        "configs": "kafka.admin.ConfigCommand",
        "quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
        "log-dirs": "org.apache.kafka.tools.LogDirsCommand",
        "topics": "org.apache.kafka.tools.TopicCommand",
        "consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
        "groups": "org.apache.kafka.tools.GroupsCommand",
        "leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
        "cluster": "org.apache.kafka.tools.ClusterTool",
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
