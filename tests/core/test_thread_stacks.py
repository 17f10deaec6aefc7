"""Calls in threads at every depth, counted by the pages of memory that the system had to give for them."""

from __future__ import annotations

import resource
from concurrent.futures import ThreadPoolExecutor

import pytest

from kafkadash.core.thread_stacks import widen_thread_stacks

CALLS, DEPTHS = 500, 400
pytestmark = pytest.mark.domain


def test_calls_from_any_depth_of_a_thread__take_no_new_memory_each_time() -> None:
    widen_thread_stacks()
    with ThreadPoolExecutor(1) as thread:
        worst = max(thread.submit(_most_faults, DEPTHS).result())
    assert worst < CALLS / 2, f"{worst} pages of memory for {CALLS} calls from one depth"


def _most_faults(depth: int) -> list[int]:
    """Page faults of ``CALLS`` calls, from each depth down to this one."""
    before = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt
    for _ in range(CALLS):
        _do_nothing()
    faults = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt - before
    return [faults, *(_most_faults(depth - 1) if depth else [])]


def _do_nothing() -> None:
    """Has a larger frame than the calls above, so that a chunk that ends there has no room for it."""


_do_nothing.__code__ = _do_nothing.__code__.replace(co_stacksize=200)
