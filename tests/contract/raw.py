"""One Kafka request over a socket of its own with kio's codec: how tests read a true value past the adapter."""

from __future__ import annotations

import io
import socket
import struct
from typing import Any

from kio.index import load_payload_module, load_request_schema, load_response_schema
from kio.serial import entity_reader, entity_writer
from kio.static.constants import EntityType
from kio.static.primitive import i16, i32

TIMEOUT_S = 10.0
DESCRIBE_QUORUM = 55


def ask(address: str, api_key: int, version: int, **fields: object) -> Any:
    """The response entity of ``api_key`` at ``version`` from the broker at ``host:port``."""
    host, port = address.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=TIMEOUT_S) as connection:
        return exchange(connection, api_key, version, **fields)


def exchange(connection: socket.socket, api_key: int, version: int, **fields: object) -> Any:
    request = load_request_schema(api_key, version)(**fields)
    header = request.__header_schema__(
        request_api_key=i16(api_key), request_api_version=i16(version), correlation_id=i32(7), client_id="raw"
    )
    frame = encoded(header) + encoded(request)
    connection.sendall(struct.pack(">i", len(frame)) + frame)
    [size] = struct.unpack(">i", _exactly(connection, 4))
    answer = _exactly(connection, size)
    response = load_response_schema(api_key, version)
    _, header_size = entity_reader(response.__header_schema__)(answer, 0)
    entity, _ = entity_reader(response)(answer, header_size)
    return entity


def quorum_leader(address: str) -> int | None:
    """The id of the active controller, which the broker at ``host:port`` asks (KIP-595, DescribeQuorum); None: none.

    Raises OSError where no answer came in time.
    """
    types = request_types(DESCRIBE_QUORUM, 0)
    asked = types.TopicData(topic_name="__cluster_metadata", partitions=(types.PartitionData(partition_index=0),))
    answer = ask(address, DESCRIBE_QUORUM, 0, topics=(asked,))
    if answer.error_code != 0:
        return None
    leader = int(answer.topics[0].partitions[0].leader_id)
    return leader if leader >= 0 else None


def request_types(api_key: int, version: int) -> Any:
    """The module that holds a request's nested entities."""
    return load_payload_module(api_key, version, EntityType.request)


def encoded(entity: Any) -> bytes:
    buffer = io.BytesIO()
    entity_writer(type(entity))(buffer, entity)
    return buffer.getvalue()


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        chunk = connection.recv(size - len(data))
        if not chunk:
            raise ConnectionError("the broker closed the connection")
        data += chunk
    return bytes(data)
