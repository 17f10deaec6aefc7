"""Part "zookeeper": the product on a real ensemble of three ZooKeeper servers and three brokers of Kafka 3.9.

Each figure is compared with Kafka's own tools and with what kazoo's client reads. Reassignments are listed and
described, a drain is cancelled, another one completed and rolled back, and a third one loses the broker that it drains.
Then servers of the ensemble are stopped, at last its majority; it is asked over TLS; and a migration to KRaft begins.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from kafkadash.devtools.playground.cluster import SecuredEnsemble
from tests.contract.certificates import new_authority
from tests.proof.extent import Extent
from tests.stack.stack import Shape, Stack

RACKS = ("a", "b", "b")
QUICK = {
    "EXECUTE_INTERVAL": "1",
    **{f"INTERVAL_{kind}": "5" for kind in ("METADATA", "REASSIGNMENTS", "LOG_DIRS", "CONFIGS", "VERSIONS")},
}


def prove(folder: Path, extent: Extent) -> bool:
    """Once; a second round would ask the same."""
    del extent
    began = time.monotonic()
    authority = new_authority()
    ensemble = SecuredEnsemble(authority.broker.pem, authority.broker.key_pem)
    shape = Shape(racks=RACKS, zookeepers=3, webs=0)
    with Stack(folder / "stack", shape, environment={"": QUICK}, ensemble=ensemble) as stack:
        stack.provision()
        os.environ.update(stack.addresses() | {"DJANGO_SETTINGS_MODULE": "kafkadash.settings", "LOG_LEVEL": "ERROR"})
        import django

        django.setup()
        from tests.proof.zookeeper_runs import Scenes

        held = Scenes(stack, authority).play_all(folder)
    stack.remove()
    print(f"  {time.monotonic() - began:.0f} s", flush=True)  # noqa: T201
    return held
