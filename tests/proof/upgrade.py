"""Part "upgrade": a drain that the previous commit's code began is finished by this one, on the same database.

All processes are told to end by SIGTERM in the middle of it, the database is migrated, and they start with new code.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from tests.proof.extent import Extent
from tests.stack.stack import CHECKOUT, Stack
from tests.upgrade.make_dump import end_by_sigterm
from tests.upgrade.older import PACE, PRODUCT, SHAPE, begun, checked_out, states

PREVIOUS = "KAFKADASH_PROOF_PREVIOUS"
"""Names another commit than the one before this."""
THROTTLE, MIB = 400_000, 8
ENDS_S = 240.0


def prove(folder: Path, extent: Extent) -> bool:
    """Once, however many rounds are asked for: this process has one database."""
    del extent
    commit = os.environ.get(PREVIOUS, "HEAD~1")
    with checked_out(commit) as code:
        stack = Stack(folder / "stack", SHAPE, code=code, environment={"": PACE})
        try:
            stack.start()
            number = begun(stack, THROTTLE, MIB)
            _say(f"#{number} of {commit} is under way: {states(stack)}")
            began = time.monotonic()
            end_by_sigterm(stack)
            _say(f"all of it ended within {time.monotonic() - began:.1f} s")
            stack.code = CHECKOUT
            stack.manage("migrate")
            for name in PRODUCT:
                stack.resume(name)
            return _finished(stack, number)
        finally:
            stack.stop()


def _finished(stack: Stack, number: int) -> bool:
    """By the new code, with what it says about it; judged by Kafka's own tools."""
    os.environ.update(stack.addresses())
    os.environ |= {"LOG_LEVEL": "ERROR", "DJANGO_SETTINGS_MODULE": "kafkadash.settings"}
    import django

    django.setup()
    from kafkadash.accounts.models import User
    from kafkadash.changes.models import ChangeRequest
    from kafkadash.domain.workflow_states import OVER
    from kafkadash.reassign.run import orders
    from tests.agreement.tools import Tools
    from tests.chaos.drain import POLL_S, People
    from tests.chaos.referee import Before, judge

    people = People(_say)
    end = time.monotonic() + ENDS_S
    stack.wait_serving("web")
    orders.set_throttle(
        ChangeRequest.objects.get(pk=number), User.objects.get(username="alice"), "100", "New code.", twice=True
    )
    while people.tend(number) not in OVER and time.monotonic() < end:
        time.sleep(POLL_S)
    problems = judge(Tools(stack.playground), [number], Before({}))
    stands = people.stands(number)
    if ChangeRequest.objects.get(pk=number).state != "done":
        problems.append(f"It did not end: {stands}")
    _say(stands)
    for problem in problems:
        _say(f"WRONG: {problem}")
    return not problems


def _say(text: str) -> None:
    print(f"  {text}", flush=True)  # noqa: T201
