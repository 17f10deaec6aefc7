"""Which names a regular expression matches: ``python -m kafkadash.topic_match``, a process that may be ended at once.

Python's regular expressions cannot be told to stop, and one that repeats a repetition takes longer than anybody lives.
So they are tried here, by the very code with which the planner chooses, and never in a process that serves pages.

It reads ``{"pattern":"…","excluded":"…","topics":["…"],"names":["…"]}`` from the standard input: all names of topics,
the others as in ``domain.planner.request.PlanRequest``. It writes ``{"chosen":["…"]}`` or, where one of them is no
regular expression, ``{"pattern":"…","fault":"…"}``. It uses ``CPU_S`` seconds of a processor at the most; the system
ends it (SIGXCPU) after that.
"""

from __future__ import annotations

import json
import resource
import sys

from kafkadash.domain.planner.request import BALANCE, PlanRequest
from kafkadash.domain.planner.topic_choice import BadPattern, chosen

CPU_S = 2
MOST_BYTES = 512_000_000


def main() -> int:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S + 1))
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    given = json.load(sys.stdin)
    request = PlanRequest(BALANCE, topics=tuple(given["topics"]), pattern=given["pattern"], excluded=given["excluded"])
    try:
        found: dict[str, object] = {"chosen": chosen(request, given["names"])}
    except BadPattern as bad:
        found = {"pattern": bad.pattern, "fault": str(bad)}
    json.dump(found, sys.stdout)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
