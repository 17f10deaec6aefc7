"""Many sockets that watch one panel: ``python -m tests.bench.crowd BASE KEY NUMBER``, cookies on standard input.

Says ``connected`` when each has its first frame; on another line of input it ends and prints [frames, lost sockets].
"""

from __future__ import annotations

import asyncio
import json
import sys
from urllib.parse import urlencode

from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed
from websockets.typing import Origin

CONNECTING_AT_ONCE = 25


class Crowd:
    def __init__(self, base: str, key: str, cookies: str) -> None:
        self.frames = 0
        self.lost = 0
        self._base = base
        self._url = f"{base.replace('http', 'ws', 1)}/live/?{urlencode({'key': key})}"
        self._cookies = cookies
        self._door = asyncio.Semaphore(CONNECTING_AT_ONCE)

    async def member(self, in_: asyncio.Event) -> None:
        async with self._door:
            headers = {"Cookie": self._cookies}
            socket = await connect(self._url, origin=Origin(self._base), additional_headers=headers, proxy=None)
            await socket.recv()
            in_.set()
        try:
            async for message in socket:
                self.frames += '"content"' in str(message)
            self.lost += 1
        except ConnectionClosed:
            self.lost += 1


async def main(base: str, key: str, number: int) -> None:
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    crowd = Crowd(base, key, (await lines.readline()).decode().strip())
    arrived = [asyncio.Event() for _ in range(number)]
    members = [asyncio.create_task(crowd.member(event)) for event in arrived]
    async with asyncio.timeout(120):
        await asyncio.gather(*(event.wait() for event in arrived))
    print("connected", flush=True)  # noqa: T201
    await lines.readline()
    lost = crowd.lost
    for member in members:
        member.cancel()
    await asyncio.gather(*members, return_exceptions=True)
    print(json.dumps([crowd.frames, lost]))  # noqa: T201


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
