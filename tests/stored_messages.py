"""Messages as other versions may have stored them: pages show their codes with the parameters."""

from __future__ import annotations

from typing import Any

import pytest

from kafkadash.kafka.errors import KafkaErrorCode

OF_OTHER_VERSIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("of-a-later-version", {"broker": 1, "text": "<b>{why!r}"}),
    (KafkaErrorCode.CONNECTING_FAILED.value, {}),
)

each_of_other_versions = pytest.mark.parametrize(
    ("code", "params"), OF_OTHER_VERSIONS, ids=["unknown-code", "missing-parameter"]
)
