"""Topics with real data in them, and producers that keep writing; retention keeps all of it bounded."""

from __future__ import annotations

import threading
from collections.abc import Callable

from kafkadash.devtools.playground.load import MIB, LoadReport, LoadTopic, load_topics, produce_steadily

ARCHIVE = "clickstream-archive"
# The broker whose drain is proposed at the start: it leads all of the archive, so that all of it leaves from there.
DRAINED = 2
ARCHIVE_AT = ((DRAINED, 3), (DRAINED, 4), (DRAINED, 3), (DRAINED, 4))
BROKERS_NEEDED = 5
# Bytes per second over all topics that are written to.
RATE = 60_000
# Producers that lost their cluster try again after this many seconds.
AGAIN_SECONDS = 5.0


def sample_topics(brokers: int, *, with_archive: bool) -> list[LoadTopic]:
    """Different sizes and shapes, as many replicas as there are brokers for."""
    sizes = [
        ("orders", 12, 3, 30 * MIB),
        ("page-views", 12, 2, 40 * MIB),
        ("payments", 6, 3, 12 * MIB),
        ("inventory", 3, 2, 4 * MIB),
        ("sign-ins", 1, 3, MIB),
    ]
    chosen = [LoadTopic(name, partitions, min(rf, brokers), fill) for name, partitions, rf, fill in sizes]
    if with_archive:
        # Nobody writes to it, and it must still be there when somebody approves the drain tomorrow.
        chosen.append(LoadTopic(ARCHIVE, fill_bytes=400 * MIB, placement=ARCHIVE_AT, retention_ms=-1))
    return chosen


def fill_topics(bootstrap: str, brokers: int, *, with_archive: bool) -> LoadReport:
    """Make what is not there yet. Raises ServerError."""
    return load_topics(bootstrap, sample_topics(brokers, with_archive=with_archive), only_new=True)


class SampleTraffic:
    """Steady producers in a thread of their own, until `stop`."""

    def __init__(self, bootstrap: str, say: Callable[[str], None]) -> None:
        self._bootstrap = bootstrap
        self._say = say
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="traffic", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, deadline: float) -> None:
        self._stop.set()
        self._thread.join(deadline)

    def _run(self) -> None:
        names = [topic.name for topic in sample_topics(1, with_archive=False)]
        while not self._stop.is_set():
            try:
                produce_steadily(self._bootstrap, names, RATE, self._stop)
            except Exception as error:  # noqa: BLE001  a client's error of any kind: said, and tried again
                self._say(f"The sample producers stopped ({error}). Retry in {AGAIN_SECONDS:g} s.")
                self._stop.wait(AGAIN_SECONDS)
