"""``python -m tests.pipeline.driver URI FLUSHES EVERY [POINT NTH]``: the pipeline, killing itself where it is told.

A batch each EVERY seconds until it is killed; with 0 it takes what is there, and ends. The signal is SIGKILL: nothing
is cleaned up, and the JVM notices by itself.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence

from kafkadash.pipeline import application, session
from kafkadash.pipeline.store import open_store

POINTS = ("lake written", "lag_rollup written", "topic_rollup written", "results written", "marker written")


def main(arguments: Sequence[str]) -> None:
    uri, at_once, every = arguments[0], int(arguments[1]), float(arguments[2])
    where, left = (arguments[3], int(arguments[4])) if len(arguments) > 3 else ("", 0)

    def point(name: str) -> None:
        nonlocal left
        if name == where:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    session.require()
    application.run(open_store(uri), os.environ, application.StreamWay(every or None, at_once, point))


if __name__ == "__main__":
    main(sys.argv[1:])
