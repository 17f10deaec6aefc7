"""The web process of the demo: ``python -m kafkadash.ops.demo.web PORT``."""

from __future__ import annotations

import sys

import uvicorn

from kafkadash.embedded.ports import LOOPBACK

# Open WebSockets are told to go and then cut: browsers come back by themselves.
GRACE_SECONDS = 3


def main(port: int) -> None:
    uvicorn.run(
        "kafkadash.asgi:application",
        host=LOOPBACK,
        port=port,
        log_config=None,  # the settings configure logging, with redaction
        access_log=False,
        lifespan="off",
        timeout_graceful_shutdown=GRACE_SECONDS,
    )


if __name__ == "__main__":
    main(int(sys.argv[1]))
