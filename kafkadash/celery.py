"""The Celery application: ``celery -A kafkadash.celery worker -P threads -Q tick`` and friends."""

import os

from celery import Celery
from celery.signals import setup_logging

from kafkadash.core.thread_stacks import widen_thread_stacks

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kafkadash.settings")

app = Celery("kafkadash")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
widen_thread_stacks()  # tasks run in threads


@setup_logging.connect
def keep_our_logging(**_: object) -> None:
    """Celery leaves logging alone once somebody handles this signal; settings have configured it already."""
