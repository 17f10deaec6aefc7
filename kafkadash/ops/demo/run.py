"""From options to an exit code: whatever goes wrong is a sentence, and nothing is left running."""

from __future__ import annotations

import traceback
from collections.abc import Callable

from kafkadash.domain.messages import message_text
from kafkadash.embedded.process import ServerError
from kafkadash.ops.demo import folder as folders
from kafkadash.ops.demo.folder import Folder
from kafkadash.ops.demo.report import Report
from kafkadash.ops.demo.stopping import InterruptedStart, StopRequests
from kafkadash.ops.demo.supervisor import Demo, Options
from kafkadash.ops.errors import OperationErrorCode

FAILED = 1
INTERRUPTED = 130  # what shells say of a program that Ctrl-C ended


def run(options: Options, say: Callable[[str], object], complain: Callable[[str], object]) -> int:
    """Run the demo until somebody asks it to stop: 0, 1 when something failed, 130 when the start was cut short."""
    report = Report(say)
    with StopRequests() as requests:
        try:
            folder = folders.make(options.folder)
            with folder.held():
                return _run(Demo(options, folder, report, requests), folder, report, complain)
        except ServerError as error:
            complain(str(error))
            return FAILED


def _run(demo: Demo, folder: Folder, report: Report, complain: Callable[[str], object]) -> int:
    code = 0
    report.say(f"kafkadash demo in {folder.path}")
    try:
        demo.start()
        for line in demo.summary():
            report.say(line)
        demo.watch()
    except InterruptedStart:
        code = INTERRUPTED
    except ServerError as error:
        complain(str(error))
        code = FAILED
    except Exception as error:  # noqa: BLE001  a user gets a sentence, the traceback goes to the log
        log = folder.log("demo")
        with log.open("a", encoding="utf-8") as file:
            traceback.print_exception(error, file=file)
        complain(message_text(OperationErrorCode.DEMO_CRASHED, log=log))
        code = FAILED
    if demo.runs():
        with report.step("stopped"):
            demo.stop()
    return code
