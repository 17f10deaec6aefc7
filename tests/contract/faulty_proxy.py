"""Proxies on loopback that break answers in a way that they are told, for servers that talk in frames.

A frame is four bytes of length and that many bytes, as Kafka and ZooKeeper send them.
"""

from __future__ import annotations

import asyncio
import random
import socket
import struct
import threading
from collections.abc import Coroutine
from enum import StrEnum
from typing import Any, Self

LOOPBACK = "127.0.0.1"
_LENGTH = struct.Struct("!i")
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER: the socket is reset when it is closed


class FaultKind(StrEnum):
    """Ways to break an answer."""

    CUT = "cut"
    """The connection ends in the middle of the answer."""
    RESET = "reset"
    """The connection is reset in the middle of the answer."""
    STALLED = "stalled"
    """A part of the answer comes, and then nothing more."""
    LOST = "lost"
    """The server has the request, and nobody gets its answer."""
    UNSENT = "unsent"
    """The connection ends before the server has the request."""
    TORN = "torn"
    """The answer comes in many small pieces, and is whole."""
    LATE = "late"
    """The answer comes after the deadline of whoever asked."""
    TWICE = "twice"
    """The answer comes twice."""
    REFUSED = "refused"
    """All connections end, and so does each new one."""
    SWAPPED = "swapped"
    """The answer names another request than the one it answers."""
    NOISE = "noise"
    """Random bytes instead of the answer."""
    LENGTH = "length"
    """The length of the frame is a random number."""
    FLIPPED = "flipped"
    """Some bits of the answer are others."""


CORRUPTING = frozenset({FaultKind.NOISE, FaultKind.LENGTH, FaultKind.FLIPPED})
"""Bytes that no TCP connection delivers. They may spell a wrong value, which nobody can tell: there is no checksum."""


class FaultyProxy:
    """Proxies in front of servers on loopback, in a thread of their own. ``late_s``: by how much an answer is late."""

    def __init__(self, late_s: float) -> None:
        self._late_s = late_s
        self._kind: FaultKind | None = None
        self._whole = self._left = 0
        self._random = random.Random(0)
        self._injected = False
        self._listeners: list[asyncio.Server] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="faulty-proxy", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._run(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def stand_before(self, port: int) -> int:
        """Return the port of a new proxy in front of a server's port."""
        own: int = self._run(self._listen(port))
        return own

    def arm(self, kind: FaultKind, *, whole: int, broken: int, seed: int) -> None:
        """Pass ``whole`` answers, then break as many as ``broken``."""
        self._run(self._arm(kind, whole, broken, seed))

    def disarm(self) -> bool:
        """Return whether any answer was broken.

        Connections end with corrupted bytes: what a client learns when it connects, such as ApiVersions, it keeps.
        """
        return bool(self._run(self._disarm()))

    # ---- the loop's thread

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout=30)

    async def _arm(self, kind: FaultKind, whole: int, broken: int, seed: int) -> None:
        self._kind, self._whole, self._left = kind, whole, broken
        self._random, self._injected = random.Random(seed), False
        if kind is FaultKind.REFUSED:
            self._end_connections()

    async def _disarm(self) -> bool:
        if self._kind in CORRUPTING and self._injected:
            self._end_connections()
        self._kind = None
        return self._injected

    def _end_connections(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def _end(self) -> None:
        for listener in self._listeners:
            listener.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _listen(self, port: int) -> int:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                await self._serve(port, reader, writer)
            except (asyncio.IncompleteReadError, ConnectionError):
                pass  # either side has left
            finally:
                writer.transport.abort()

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = self._loop.create_task(serve(reader, writer))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        listener = await asyncio.start_server(accept, LOOPBACK, 0, limit=1 << 26)
        self._listeners.append(listener)
        own: int = listener.sockets[0].getsockname()[1]
        return own

    async def _serve(self, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._kind is FaultKind.REFUSED:
            self._injected = True
            return
        back, forth = await asyncio.open_connection(LOOPBACK, port, limit=1 << 26)
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(self._pass_requests(reader, forth))
                both.create_task(self._pass_answers(back, writer))
        except* (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            forth.transport.abort()
            writer.transport.abort()

    async def _pass_requests(self, reader: asyncio.StreamReader, forth: asyncio.StreamWriter) -> None:
        while True:
            frame = await _read_frame(reader)
            if self._kind is FaultKind.UNSENT and self._take():
                raise ConnectionResetError
            forth.write(_LENGTH.pack(len(frame)) + frame)
            await forth.drain()

    async def _pass_answers(self, back: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            frame = await _read_frame(back)
            kind = self._kind
            if kind is None or kind in {FaultKind.UNSENT, FaultKind.REFUSED} or not self._take():
                writer.write(_LENGTH.pack(len(frame)) + frame)
                await writer.drain()
            else:
                await self._break(kind, frame, writer)

    def _take(self) -> bool:
        """Return whether this is an answer to break."""
        if self._whole > 0:
            self._whole -= 1
            return False
        self._left -= 1
        self._injected = self._injected or self._left >= 0
        return self._left >= 0

    async def _break(self, kind: FaultKind, frame: bytes, writer: asyncio.StreamWriter) -> None:
        length = _LENGTH.pack(len(frame))
        part = (length + frame)[: self._random.randrange(len(frame) + _LENGTH.size)]
        match kind:
            case FaultKind.LOST:
                raise ConnectionResetError
            case FaultKind.CUT | FaultKind.RESET:
                writer.write(part)
                await writer.drain()
                if kind is FaultKind.RESET:
                    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                raise ConnectionResetError
            case FaultKind.STALLED:
                writer.write(part)
                await asyncio.Event().wait()
            case FaultKind.LATE:
                await asyncio.sleep(self._late_s)
                writer.write(length + frame)
            case FaultKind.TORN:
                await self._write_pieces(length + frame, writer)
            case _:
                writer.write(self._spoil(kind, frame))

    async def _write_pieces(self, whole: bytes, writer: asyncio.StreamWriter) -> None:
        size = max(1, len(whole) // self._random.randrange(2, 40))
        for start in range(0, len(whole), size):
            writer.write(whole[start : start + size])
            await writer.drain()
            await asyncio.sleep(0)

    def _spoil(self, kind: FaultKind, frame: bytes) -> bytes:
        """Return what is sent instead of a frame."""
        length = _LENGTH.pack(len(frame))
        match kind:
            case FaultKind.TWICE:
                return (length + frame) * 2
            case FaultKind.SWAPPED:
                return length + _LENGTH.pack(self._random.randrange(1 << 31)) + frame[_LENGTH.size :]
            case FaultKind.NOISE:
                return self._random.randbytes(len(frame) + _LENGTH.size)
            case FaultKind.LENGTH:
                return _LENGTH.pack(self._random.randrange(-(1 << 31), 1 << 31)) + frame
        flipped = bytearray(frame)
        for _ in range(self._random.randrange(1, 9)):
            flipped[self._random.randrange(len(flipped))] ^= 1 << self._random.randrange(8)
        return length + flipped


async def _read_frame(reader: asyncio.StreamReader) -> bytes:
    [length] = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
    return await reader.readexactly(length)
