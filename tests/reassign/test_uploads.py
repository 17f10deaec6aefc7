"""Kafka's JSON on its way into a draft: how much is taken, and what its name may be."""

from __future__ import annotations

import hashlib
import zlib
from unittest import mock

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from kafkadash.reassign import uploads
from kafkadash.reassign.uploads import TooLarge, from_file, from_text, shown_name

CONTENT = b'{"version":1,"partitions":[]}\n' * 1000


def test_a_file_is_kept_compressed_with_its_name_size_and_digest() -> None:
    brought = from_file(SimpleUploadedFile("plan.json", CONTENT))
    assert (brought.name, brought.size, brought.sha256) == ("plan.json", 30_000, hashlib.sha256(CONTENT).hexdigest())
    assert zlib.decompress(brought.data) == CONTENT
    assert len(brought.data) < 1000


def test_a_file_that_is_too_large_is_not_read_at_all() -> None:
    file = SimpleUploadedFile("plan.json", CONTENT)
    file.size = 50_000_001
    with mock.patch.object(file, "chunks") as chunks, pytest.raises(TooLarge) as refused:
        from_file(file)
    assert not chunks.called
    assert str(refused.value) == (
        "This is 50.0 MB, and 50 MB are taken at most. Split the assignment into several changes, or take out the "
        "partitions that do not move."
    )


def test_a_file_that_says_it_is_smaller_than_it_is_ends_where_it_gets_too_large() -> None:
    file = SimpleUploadedFile("plan.json", CONTENT)
    file.size = 10
    with mock.patch.object(uploads, "LARGEST_BYTES", 20_000), pytest.raises(TooLarge):
        from_file(file)


def test_a_pasted_text_counts_in_bytes_not_in_characters() -> None:
    with mock.patch.object(uploads, "LARGEST_BYTES", 10), pytest.raises(TooLarge):
        from_text("é" * 6)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("plan.json", "plan.json"),
        ("../../etc/passwd", "passwd"),
        ("C:\\temp\\plan.json", "plan.json"),
        ("<img src=x>.json", "<img src=x>.json"),
        ("a\x00b\n.json", "ab.json"),
        ("x" * 300, "x" * 119 + "…"),
    ],
)
def test_of_a_name_its_last_part_is_shown_and_nothing_that_cannot_be_printed(name: str, shown: str) -> None:
    assert shown_name(name) == shown
