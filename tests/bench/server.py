"""A PostgreSQL of its own for benches that need rows and no Kafka. Use it before anything of Django is imported."""

from __future__ import annotations

import logging
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cryptography.fernet import Fernet

from kafkadash.devtools.embedded.postgres import EmbeddedPostgres
from kafkadash.devtools.embedded.valkey import EmbeddedValkey


@contextmanager
def empty_database() -> Iterator[Path]:
    """Django is set up on an empty, migrated database; yields the folder of this run, which is removed at the end."""
    folder = Path(tempfile.mkdtemp(prefix="kafkadash-bench-"))
    folder.chmod(0o755)  # started by root, PostgreSQL runs as another user and must reach its files in here
    postgres, valkey = EmbeddedPostgres(folder), EmbeddedValkey(folder)
    try:
        postgres.start()
        valkey.start()
        os.environ.update(
            KAFKADASH_VAR=str(folder),
            DATABASE_URL=postgres.url(),
            REDIS_URL=valkey.url(),
            SECRET_KEY=secrets.token_urlsafe(32),
            FIELD_KEYS=Fernet.generate_key().decode(),
            DJANGO_SETTINGS_MODULE="kafkadash.settings",
        )
        import django
        from django.core.management import call_command

        django.setup()
        logging.disable(logging.INFO)  # a line for every request would bury the figures
        call_command("migrate", verbosity=0)
        yield folder
        from django.db import connections

        connections.close_all()
    finally:
        valkey.stop()
        postgres.stop()
        postgres.remove()
        shutil.rmtree(folder, ignore_errors=True)
