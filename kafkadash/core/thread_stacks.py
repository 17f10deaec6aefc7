"""Room for the Python calls of threads, without which some calls are slow by chance."""

import threading
from typing import Any

ROOM_SLOTS = 33_000
"""Slots of 8 bytes. CPython doubles a chunk until it holds the frame and 1,000 slots: to 512 KiB, half of it free."""


def widen_thread_stacks() -> None:
    """Let threads that are started from now on keep the frames of their calls in one chunk of memory."""
    widen_stack(threading.Thread.run)


def widen_stack(function: Any) -> None:
    """Let a Python function, and all that it calls, keep their frames in one chunk of memory.

    CPython up to 3.14 gives a thread chunks of 16 KiB, and returns a chunk to the system as soon as its last frame
    ends (https://github.com/python/cpython/issues/142183). A loop whose calls begin at the very end of a chunk maps and
    unmaps memory with each call: rendering the status board then took twice as long. A frame that claims more than it
    uses makes its chunk large; memory that is not touched costs nothing.
    """
    code = function.__code__
    function.__code__ = code.replace(co_stacksize=max(code.co_stacksize, ROOM_SLOTS))
