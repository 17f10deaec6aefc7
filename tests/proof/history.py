"""Part "history": what Kafka told of a group goes through Spark and comes back, in a browser in front of the product.

The test stands with those of the browser, whose product it uses; ``make test`` leaves it out.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.e2e.conftest import LONG_FORMS, LONG_TESTS
from tests.proof.extent import Extent

TESTS = Path(__file__).resolve().parents[1] / "e2e"


def prove(folder: Path, extent: Extent) -> bool:
    """Once; a second round would ask the same."""
    del extent
    command = [sys.executable, "-m", "pytest", "-q", "-n0", f"--basetemp={folder / 'pytest'}"]
    command += [str(TESTS / name) for name in LONG_TESTS]
    return subprocess.run(command, check=False, env={**os.environ, LONG_FORMS: "1"}).returncode == 0
