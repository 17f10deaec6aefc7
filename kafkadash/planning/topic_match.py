"""Child process that matches names by regular expression: ``python -m kafkadash.planning.topic_match``.

Python's regular expressions cannot be interrupted, and nested repetitions can take practically for ever. So they run
here, by the very code with which the planner selects topics, and never in a process that serves pages.

The process reads ``{"pattern":"…","excluded":"…","topics":["…"],"names":["…"],"skipped":["…"]}`` from standard input:
all names of topics, those that are skipped unless they are named, and the other fields as in
``planning.solver.request.PlanRequest``. It writes ``{"chosen":["…"]}`` or, if a pattern
is not a regular expression, ``{"pattern":"…","fault":"…"}``. After ``CPU_S`` seconds of CPU time the system ends it
(SIGXCPU).
"""

from __future__ import annotations

import json
import resource
import sys

from kafkadash.planning.solver.request import BALANCE, BadPattern, PlanRequest, choose_topics

CPU_S = 2
MOST_BYTES = 512_000_000


def main() -> int:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S + 1))
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    given = json.load(sys.stdin)
    fields = {name: given[name] for name in ("pattern", "excluded")}
    request = PlanRequest(BALANCE, topics=tuple(given["topics"]), internal=not given["skipped"], **fields)
    try:
        found: dict[str, object] = {"chosen": choose_topics(request, given["names"], given["skipped"])}
    except BadPattern as bad:
        found = {"pattern": bad.pattern, "fault": str(bad)}
    json.dump(found, sys.stdout)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
