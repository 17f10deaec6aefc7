"""``python -m tests.pipeline.taker [drain]``: the ingest as a process of its own, turn after turn until it is killed.

With ``drain`` until nothing waits any more. Its transactions are so short that there is a point between two of them in
every result.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from threading import Event
from unittest import mock

import django

ROWS = 20
PAUSE_SECONDS = 0.3


def main(arguments: Sequence[str]) -> None:
    django.setup()
    from kafkadash.history import ingest
    from kafkadash.history import ingest as rows_of
    from kafkadash.history import schedule as turns
    from kafkadash.history.models import PipelineState

    turns.ensure_state()
    pause = Event()
    with mock.patch.object(ingest, "AT_ONCE", ROWS), mock.patch.object(rows_of, "AT_ONCE", ROWS):
        while True:
            taken = ingest.take_turn(turns.STATE_ID, only_if_due=False)
            if "drain" in arguments and taken == 0:
                error = PipelineState.objects.get().last_error
                sys.exit(str(error) if error else None)
            pause.wait(PAUSE_SECONDS)  # as long as a lease of one that was killed holds, there is no turn


if __name__ == "__main__":
    main(sys.argv[1:])
