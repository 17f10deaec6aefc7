"""Reading sessions with a ZooKeeper ensemble, over kazoo's message classes and sockets of our own.

Kazoo's client keeps threads, reconnects without end, and reads an answer of any size. A refresh needs a few znodes by a
deadline, so a session here is one socket of the calling thread: it is opened, asked and closed. No watch is set, and
nothing is written but what ``replace`` is given. Each session reads after a sync, so that a server that lags behind its
leader tells nothing outdated.
"""

from __future__ import annotations

import ipaddress
import random
import socket
import ssl
import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from kazoo.exceptions import BadVersionError, NoAuthError, NoNodeError
from kazoo.protocol.connection import AUTH_XID
from kazoo.protocol.serialization import (
    Auth,
    Close,
    Connect,
    Create,
    GetChildren,
    GetData,
    MultiHeader,
    ReplyHeader,
    SetData,
    Sync,
    Transaction,
    read_string,
)
from kazoo.security import READ_ACL_UNSAFE

from kafkadash.core.host_names import HostUnresolved, resolve_host
from kafkadash.kafka.api import (
    AnswerTooLarge,
    DeadlineExceeded,
    KafkaFailure,
    KafkaUnreachable,
    NotAuthorized,
    ZooKeeperConnection,
)
from kafkadash.kafka.connections import ssl_context, tls_reason
from kafkadash.kafka.errors import KafkaErrorCode
from kafkadash.kafka.znodes import ChangeNotice, WriteUnanswered, ZNode, ZNodeUnusable, check_cluster, is_text

MOST_ANSWER_BYTES = 32_000_000
"""A list of all topics is the largest answer; a znode has at most 1 MB (jute.maxbuffer) unless its servers say more."""
_SESSION_MS = 10_000
_AT_ONCE = 200  # questions on their way
_GOODBYE_S = 0.5
_HEADER_BYTES = 4
_REFUSALS = frozenset({BadVersionError.code, NoNodeError.code, NoAuthError.code})
_SEQUENTIAL = 2  # CreateMode.PERSISTENT_SEQUENTIAL
_ERROR = -1  # ZooDefs.OpCode.error
_ERROR_BYTES, _STAT_BYTES = 4, 68


class ServerRefused(KafkaFailure):
    """A server was reached and serves no session: it has no quorum, or speaks another protocol."""


@contextmanager
def open_session(connection: ZooKeeperConnection, *, deadline: float) -> Iterator[ZooKeeperSession]:
    """A session with one server of the ensemble, by whose chroot the connection's cluster was found.

    Servers are tried in any order, each for its share of the ``deadline`` (seconds from now), which everything in the
    session has to keep. Raises KafkaFailure.
    """
    until = time.monotonic() + deadline
    context = ssl_context(connection.tls) if connection.tls else None
    addresses = random.sample(connection.addresses, len(connection.addresses))
    failures: list[KafkaFailure] = []
    for index, address in enumerate(addresses):
        share = (until - time.monotonic()) / (len(addresses) - index)
        session = ZooKeeperSession(connection, address, context)
        try:
            session.open(time.monotonic() + share)
            check_cluster(session, connection)
        except (KafkaUnreachable, DeadlineExceeded, ServerRefused) as failure:
            session.drop()
            failures.append(failure)
            continue
        except BaseException:
            session.close()
            raise
        session.until = until
        try:
            yield session
        finally:
            session.close()
        return
    raise _choose_failure(failures)


def _choose_failure(failures: Sequence[KafkaFailure]) -> KafkaFailure:
    """The one that says most: a server that answered something was reached."""
    ranks = (ServerRefused, DeadlineExceeded, KafkaUnreachable)
    return min(failures, key=lambda failure: ranks.index(type(failure)))


class ZooKeeperSession:
    """Session over one socket. Paths are those below the chroot."""

    def __init__(self, connection: ZooKeeperConnection, address: str, context: ssl.SSLContext | None) -> None:
        self.connection = connection
        self.address = address
        self.until = 0.0
        self._context = context
        self._socket: socket.socket | None = None
        self._xid = 0

    def open(self, until: float) -> None:
        """Connect, begin a session, log in, and wait until the server knows what its leader does.

        Raises KafkaFailure.
        """
        self.until = until
        self._socket = self._start_tls(self._connect())
        self._send(Connect(0, 0, _SESSION_MS, 0, b"\0" * 16, False).serialize())  # noqa: FBT003  (no read-only server)
        try:
            granted, _ = Connect.deserialize(self._receive(first=True), 0)
        except (struct.error, ValueError):
            raise self._not_spoken() from None
        if granted.time_out <= 0:
            raise ServerRefused(KafkaErrorCode.ZOOKEEPER_WITHOUT_QUORUM, address=self.address)
        if self.connection.username:
            login = f"{self.connection.username}:{self.connection.password}"
            self._ask_one(Auth(0, "digest", login), AUTH_XID)
        self._ask([Sync(self._full("/"))])

    def read(self, paths: Sequence[str]) -> Sequence[ZNode | None]:
        found: list[ZNode | None] = []
        for path, answer in zip(paths, self._ask([GetData(self._full(path), None) for path in paths]), strict=True):
            if answer is None:
                found.append(None)
                continue
            data, stat = answer
            found.append(ZNode(path, bytes(data or b""), stat.czxid, stat.ctime, stat.mtime, stat.version))
        return found

    def children(self, path: str) -> Sequence[str]:
        [names] = self._ask([GetChildren(self._full(path), None)])
        if names is None:
            return ()
        if not all(name and is_text(name) for name in names):
            raise ZNodeUnusable(KafkaErrorCode.ZNODE_MALFORMED, path=path, part="children")
        return sorted(names)

    def extend(self, seconds: float) -> None:
        self.until = time.monotonic() + seconds

    def replace(self, znode: ZNode, data: bytes, notice: ChangeNotice) -> bool:
        """Once it is sent, whatever keeps the answer from us leaves it open whether it was done.

        Brokers may delete the notice as their right to that belongs to its parent; nobody may change it.
        """
        paths = (self._full(znode.path), self._full(notice.prefix))
        write = SetData(paths[0], data, znode.version)
        request = Transaction((write, Create(paths[1], notice.data, READ_ACL_UNSAFE, _SEQUENTIAL)))
        xid = self._next_xid()
        message = _pack_request(request, xid)
        self._left()
        try:
            self._send(message)
            answer = self._receive()
            header, offset = ReplyHeader.deserialize(answer, 0)
            errors = _read_part_errors(answer, offset) if header.err == 0 else [header.err]
        except (KafkaFailure, struct.error, ValueError):
            raise WriteUnanswered(KafkaErrorCode.ZOOKEEPER_LOST, address=self.address) from None
        refused = next(
            ((number, path) for number, path in zip(errors, paths, strict=False) if number in _REFUSALS), None
        )
        if header.xid != xid or (errors and not refused):
            raise WriteUnanswered(KafkaErrorCode.ZOOKEEPER_LOST, address=self.address)
        if refused and refused[0] == NoAuthError.code:
            raise NotAuthorized(KafkaErrorCode.ZNODE_PROTECTED, path=refused[1])
        return not refused

    def close(self) -> None:
        """End the session at once rather than by its time-out, as far as the server takes it."""
        if self._socket is None:
            return
        self.until = time.monotonic() + _GOODBYE_S
        with suppress(KafkaFailure, OSError):
            self._ask_one(Close(), self._next_xid())
        self.drop()

    def drop(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _full(self, path: str) -> str:
        return f"{self.connection.chroot}{path}" if path != "/" else self.connection.chroot or "/"

    def _next_xid(self) -> int:
        self._xid += 1
        return self._xid

    def _ask(self, requests: Sequence[Any]) -> list[Any]:
        """Answers in order, None for a znode that does not exist; several questions are on their way at a time."""
        answers: list[Any] = []
        for start in range(0, len(requests), _AT_ONCE):
            asked = [(request, self._next_xid()) for request in requests[start : start + _AT_ONCE]]
            self._send_all([_pack_request(request, xid) for request, xid in asked])
            answers += [self._answer(request, xid) for request, xid in asked]
        return answers

    def _ask_one(self, request: Any, xid: int) -> None:
        self._send(_pack_request(request, xid))
        self._answer(request, xid)

    def _answer(self, request: Any, xid: int) -> Any:
        answer = self._receive()
        try:
            header, offset = ReplyHeader.deserialize(answer, 0)
            if header.xid != xid:
                raise self._not_spoken()
            if header.err == NoNodeError.code:
                return None
            if header.err == NoAuthError.code:
                raise NotAuthorized(KafkaErrorCode.ZNODE_PROTECTED, path=getattr(request, "path", "/"))
            if header.err:
                raise ServerRefused(KafkaErrorCode.ZOOKEEPER_FAILED, address=self.address, number=header.err)
            return request.deserialize(answer, offset) if hasattr(request, "deserialize") else ()
        except (struct.error, ValueError):
            raise self._not_spoken() from None

    def _send(self, message: bytes | bytearray) -> None:
        self._send_all([message])

    def _send_all(self, messages: Sequence[bytes | bytearray]) -> None:
        assert self._socket is not None
        try:
            self._socket.settimeout(self._left())
            self._socket.sendall(b"".join(struct.pack("!i", len(message)) + message for message in messages))
        except OSError as error:
            raise self._broken(error) from None

    def _receive(self, *, first: bool = False) -> bytes:
        """``first``: an end of the stream means that the server serves nobody."""
        [length] = struct.unpack("!i", self._receive_bytes(_HEADER_BYTES, first=first))
        if length < 0:
            raise self._not_spoken()
        if length > MOST_ANSWER_BYTES:
            if first:
                raise self._not_spoken()  # of another protocol the first bytes are no length
            raise AnswerTooLarge(
                KafkaErrorCode.ZOOKEEPER_ANSWER_TOO_LARGE, address=self.address, most=MOST_ANSWER_BYTES // 1_000_000
            )
        return self._receive_bytes(length)

    def _receive_bytes(self, length: int, *, first: bool = False) -> bytes:
        assert self._socket is not None
        received = bytearray()
        try:
            while len(received) < length:
                self._socket.settimeout(self._left())
                chunk = self._socket.recv(min(length - len(received), 1 << 20))
                if not chunk:
                    if first:
                        raise ServerRefused(KafkaErrorCode.ZOOKEEPER_WITHOUT_QUORUM, address=self.address)
                    raise KafkaUnreachable(KafkaErrorCode.ZOOKEEPER_LOST, address=self.address)
                received += chunk
        except ConnectionResetError as error:
            if first:
                raise ServerRefused(KafkaErrorCode.ZOOKEEPER_WITHOUT_QUORUM, address=self.address) from None
            raise self._broken(error) from None
        except OSError as error:
            raise self._broken(error) from None
        return bytes(received)

    def _left(self) -> float:
        left = self.until - time.monotonic()
        if left <= 0:
            raise DeadlineExceeded(KafkaErrorCode.ZOOKEEPER_SLOW, address=self.address)
        return left

    def _broken(self, error: OSError) -> KafkaFailure:
        if isinstance(error, TimeoutError):
            return DeadlineExceeded(KafkaErrorCode.ZOOKEEPER_SLOW, address=self.address)
        return KafkaUnreachable(KafkaErrorCode.ZOOKEEPER_LOST, address=self.address)

    def _not_spoken(self) -> KafkaFailure:
        return ServerRefused(KafkaErrorCode.NOT_ZOOKEEPER, address=self.address)

    def _connect(self) -> socket.socket:
        failure: KafkaFailure | None = None
        found = self._resolve()
        for index, (family, kind, proto, where) in enumerate(found):
            share = self._left() / (len(found) - index)
            sock = socket.socket(family, kind, proto)
            try:
                sock.settimeout(share)
                sock.connect(where)
            except TimeoutError:
                sock.close()
                failure = KafkaUnreachable(KafkaErrorCode.NOTHING_ACCEPTED, address=self.address, seconds=share)
            except OSError as error:
                sock.close()
                said = (error.strerror or str(error)).lower()
                failure = KafkaUnreachable(KafkaErrorCode.CONNECTING_FAILED, address=self.address, said=said)
            except BaseException:
                sock.close()
                raise
            else:
                return sock
        raise failure or KafkaUnreachable(KafkaErrorCode.OUTSIDE_NETWORKS, address=self.address)

    def _resolve(self) -> list[tuple[int, int, int, Any]]:
        """Addresses of the server within the allowed networks. Raises KafkaUnreachable and DeadlineExceeded."""
        host, _, port = self.address.rpartition(":")
        host = host.strip("[]")
        seconds = self._left()
        try:
            found = resolve_host(host, int(port), seconds)
        except TimeoutError as error:
            raise DeadlineExceeded(KafkaErrorCode.NAME_SERVER_SLOW, seconds=seconds) from error
        except HostUnresolved as error:
            raise KafkaUnreachable(KafkaErrorCode.NAME_UNRESOLVED, host=host, said=error.detail) from error
        networks = [ipaddress.ip_network(network) for network in self.connection.networks]
        return [
            (family, kind, proto, where)
            for family, kind, proto, where in found
            if not networks or any(ipaddress.ip_address(where[0]) in network for network in networks)
        ]

    def _start_tls(self, sock: socket.socket) -> socket.socket:
        if self._context is None:
            return sock
        with sock:  # a socket that was wrapped is detached: only one that was not is closed
            try:
                sock.settimeout(self._left())
                return self._context.wrap_socket(sock, server_hostname=self.address.rpartition(":")[0].strip("[]"))
            except TimeoutError:
                raise DeadlineExceeded(KafkaErrorCode.TLS_SILENT, address=self.address) from None
            except OSError as error:
                reason = tls_reason(error)
                raise ServerRefused(KafkaErrorCode.TLS_FAILED, address=self.address, reason=reason, shown="") from None


def _pack_request(request: Any, xid: int) -> bytes:
    return struct.pack("!ii", xid, request.type) + bytes(request.serialize())


def _read_part_errors(answer: bytes, offset: int) -> list[int]:
    """Return the errors of the two parts of a transaction; none where both were done.

    ZooKeeper does all or nothing: the part that was refused has the reason, the others have OK or a marker. Raises
    ValueError and struct.error where the answer is no such answer.
    """
    errors: list[int] = []
    for part in (SetData, Create):
        header, offset = MultiHeader.deserialize(answer, offset)
        if header.done or header.type not in {part.type, _ERROR}:
            raise ValueError(header.type)
        if header.type == _ERROR:
            errors += struct.unpack_from("!i", answer, offset)
            offset += _ERROR_BYTES
        elif part is SetData:
            offset += _STAT_BYTES
        else:
            _, offset = read_string(answer, offset)
    if len(errors) == 1 or not MultiHeader.deserialize(answer, offset)[0].done:
        raise ValueError(errors)
    return errors
