"""``python -m kafkadash.pipeline run | once --uri URI``: the pipeline as a process of its own.

Exit codes: 0, 1 when it failed, 2 when something is missing or asked for wrongly. SIGTERM ends it in good order.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from kafkadash.pipeline import session
from kafkadash.pipeline.faults import PipelineFault
from kafkadash.pipeline.store import open_store

FAILED, REFUSED = 1, 2


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m kafkadash.pipeline")
    parser.add_argument("action", choices=("run", "once"))
    parser.add_argument("--uri", required=True)
    parser.add_argument("--every", type=float, default=5.0, metavar="SECONDS")
    parser.add_argument("--flushes", type=int, default=30, metavar="N")
    asked = parser.parse_args(arguments)
    try:
        session.require()
        store = open_store(asked.uri)
    except PipelineFault as fault:
        sys.stderr.write(f"{fault}\n")
        return REFUSED
    try:
        from kafkadash.pipeline import application

        every = asked.every if asked.action == "run" else None
        application.run(store, os.environ, application.Way(every, asked.flushes))
    except PipelineFault as fault:
        sys.stderr.write(f"{fault}\n")
        return FAILED
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
