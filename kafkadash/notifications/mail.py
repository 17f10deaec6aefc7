"""Mail over SMTP that ends in time, whatever its server does."""

from __future__ import annotations

import smtplib
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import Any

from django.core.mail import EmailMessage
from django.core.mail.backends.smtp import EmailBackend

MAIL_SECONDS = 15.0
"""Longest time of one mail, from connecting on; ``EMAIL_TIMEOUT`` bounds only the wait for the next bytes."""


class AddressesRefused(Exception):
    """Mail that its server took, but not for all of its addresses: ``answers`` has status and words for the others."""

    def __init__(self, answers: Mapping[str, tuple[int, bytes]]) -> None:
        super().__init__(answers)
        self.answers = answers


class BoundedMailBackend(EmailBackend):
    """Django's SMTP backend whose dialogue is cut after ``MAIL_SECONDS``: greeting, STARTTLS, login and mail."""

    _dialogue: smtplib.SMTP | None = None
    _refused: Mapping[str, tuple[int, bytes]] = {}

    @property
    def connection_class(self) -> Any:
        """Class of a connection that is known here before its server's first word."""
        backend = self

        class WatchedDialogue(super().connection_class):  # type: ignore[misc]
            def connect(self, *args: Any, **options: Any) -> tuple[int, bytes]:
                backend._dialogue = self
                answer: tuple[int, bytes] = super().connect(*args, **options)
                return answer

            def sendmail(self, *args: Any, **options: Any) -> dict[str, tuple[int, bytes]]:
                refused: dict[str, tuple[int, bytes]] = super().sendmail(*args, **options)
                backend._refused = {**backend._refused, **refused}
                return refused

        return WatchedDialogue

    def send_messages(self, email_messages: Sequence[EmailMessage]) -> int:
        """Send the mails and return their number; raise ``OSError`` when the server fails or is late.

        Raises ``AddressesRefused`` where they were sent to a part of their addresses: Django does not tell.
        """
        self._refused = {}
        with self._cut_when_late():
            sent = super().send_messages(email_messages) or 0
        if self._refused:
            raise AddressesRefused(self._refused)
        return sent

    @contextmanager
    def _cut_when_late(self) -> Iterator[None]:
        ended = Event()

        def watch() -> None:
            ended.wait(MAIL_SECONDS)
            while not ended.wait(0.1):
                if (sock := getattr(self._dialogue, "sock", None)) is not None:
                    with suppress(OSError):
                        sock.shutdown(socket.SHUT_RDWR)

        watcher = Thread(target=watch, name="mail-deadline", daemon=True)
        watcher.start()
        try:
            yield
        finally:
            ended.set()
            watcher.join()
