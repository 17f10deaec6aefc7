"""Kafka's JSON as somebody brought it for a draft: kept compressed, the last one counts."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.core.files.uploadedfile import UploadedFile
from django.http import QueryDict

from kafkadash.changes.models import ChangeRequest
from kafkadash.domain.messages import message_text
from kafkadash.reassign.errors import ReassignmentErrorCode
from kafkadash.reassign.models import Upload

LARGEST_BYTES = 50_000_000
SHOWN_BYTES = 200_000
"""Of what was pasted: more is not put into a text field again."""
_LONGEST_NAME = 120


class TooLarge(Exception):
    """``str()`` is a sentence with both sizes."""

    def __init__(self, size: int) -> None:
        super().__init__(
            message_text(ReassignmentErrorCode.FILE_TOO_LARGE, size=f"{size / 1e6:,.1f}", most=LARGEST_BYTES // 10**6)
        )


@dataclass(frozen=True, slots=True)
class Brought:
    """A JSON file on its way into a draft; ``data`` is zlib of its ``size`` bytes, ``name`` '' where it was pasted."""

    name: str
    size: int
    sha256: str
    data: bytes


def from_file(file: UploadedFile[Any]) -> Brought:
    """Reads the file in portions, and not at all if its size says that it is too large. Raises TooLarge."""
    if file.size is not None and file.size > LARGEST_BYTES:
        raise TooLarge(file.size)
    return _brought(shown_name(file.name or ""), file.chunks())


def from_text(text: str) -> Brought:
    """Raises TooLarge."""
    content = text.encode()
    if len(content) > LARGEST_BYTES:
        raise TooLarge(len(content))
    return _brought("", [content])


def store(change: ChangeRequest, brought: Brought) -> None:
    """In place of what was there. The caller's transaction holds the request's edit as well."""
    Upload.objects.update_or_create(
        request=change,
        defaults={"name": brought.name, "size": brought.size, "sha256": brought.sha256, "data": brought.data},
    )


def content_of(upload: Upload) -> bytes:
    """As it was received."""
    return zlib.decompress(upload.data)


def sent_too_much(query: QueryDict) -> str:
    """The sentence for ``?too_large=<bytes>``, by which ``body_limit`` tells a page what it did not take; '' else."""
    size = query.get("too_large", "")
    return str(TooLarge(int(size))) if size.isascii() and size.isdigit() and len(size) < 16 else ""


def shown_name(name: str) -> str:
    """The last part of a file's name, without what cannot be printed; never used as a path."""
    last = name.replace("\\", "/").rpartition("/")[2]
    clean = "".join(c for c in last if c.isprintable()).strip()
    return clean if len(clean) <= _LONGEST_NAME else f"{clean[: _LONGEST_NAME - 1]}…"


def _brought(name: str, chunks: Iterable[bytes]) -> Brought:
    size, digest, packer, packed = 0, hashlib.sha256(), zlib.compressobj(6), bytearray()
    for chunk in chunks:
        size += len(chunk)
        if size > LARGEST_BYTES:
            raise TooLarge(size)
        digest.update(chunk)
        packed += packer.compress(chunk)
    packed += packer.flush()
    return Brought(name, size, digest.hexdigest(), bytes(packed))
