"""Storage of segments by URI: a local folder, HDFS, or an object store.

A file appears under its name completely or not at all. In folders and in HDFS a file is written under a name that
begins with ``_`` and then renamed; an object store shows a PUT when it is complete, and a rename there is a copy. The
writer of an address first removes a ``_`` file that another writer left for it, so that a writer that slept finds
nothing to rename (ADR 13).
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import IO, Any, Protocol
from urllib.parse import unquote, urlsplit

from kafkadash.core.errors import UserError
from kafkadash.export.encoding import ParquetFooter, UnreadableFacts, read_footer
from kafkadash.export.errors import ExportErrorCode

Fill = Callable[[IO[bytes]], None]
_PUT = ("s3",)
_KNOWN = (*_PUT, "hdfs")


class PlaceUnknown(UserError):
    """A URI that leads to no place for segments."""


@dataclass(frozen=True, slots=True)
class FileEntry:
    """Entry of a listing; ``address`` is relative to the place."""

    address: str
    size: int
    modified_at: datetime


class StoragePlace(Protocol):
    """Addresses are relative, with ``/``. Everything here raises OSError where the place cannot be used."""

    uri: str

    def footer(self, address: str) -> ParquetFooter | None:
        """Return the footer of a file; None if there is no such file. Raises UnreadableFacts for an incomplete file."""
        ...

    def write(self, address: str, holder: int, fill: Fill, before_it_shows: Callable[[], None]) -> None:
        """Writes a file, or replaces one. ``before_it_shows`` may raise: then nothing shows. ``holder`` is the epoch
        of the lease under which this is written.
        """
        ...

    def folders(self, address: str) -> list[str]:
        """Names of what is directly below, if these are folders, sorted; none where there is no such folder."""
        ...

    def files(self, address: str) -> list[FileEntry]:
        """Files directly in a folder, sorted, also those that are being written."""
        ...

    def open(self, address: str) -> Any:
        """Something that PyArrow can read."""
        ...

    def delete(self, address: str) -> None:
        """Delete a file. A missing file is no error."""
        ...

    def delete_empty(self, address: str) -> bool:
        """Delete a folder; return False if it is not empty."""
        ...


def open_place(uri: str) -> StoragePlace:
    """Raises PlaceUnknown."""
    parts = urlsplit(uri)
    if parts.scheme in ("file", "") and parts.path:
        if parts.netloc not in ("", "localhost"):
            raise PlaceUnknown(
                ExportErrorCode.PLACE_UNKNOWN, uri=uri, fault=f"file: is for the local machine, not {parts.netloc}"
            )
        return LocalFolder(uri, Path(unquote(parts.path)))
    from pyarrow import ArrowException
    from pyarrow.fs import FileSystem

    # Where the pipeline does not read, segments would only pile up. Spark calls it s3a, PyArrow s3.
    arrows = f"s3{uri[3:]}" if parts.scheme in ("s3a", "s3n") else uri
    if urlsplit(arrows).scheme not in _KNOWN:
        raise PlaceUnknown(
            ExportErrorCode.PLACE_UNKNOWN, uri=uri, fault=f"“{parts.scheme}” is not supported by the pipeline"
        )
    try:
        files, path = FileSystem.from_uri(arrows)
    except (ArrowException, OSError, ValueError) as error:
        fault = str(error).splitlines()[0].rstrip(".")
        raise PlaceUnknown(ExportErrorCode.PLACE_UNKNOWN, uri=uri, fault=fault) from error
    if not path.strip("/"):
        raise PlaceUnknown(ExportErrorCode.PLACE_UNKNOWN, uri=uri, fault="bucket or folder is missing")
    return RemoteStore(uri, files, path, renames=urlsplit(arrows).scheme not in _PUT)


def join_uri(uri: str, name: str) -> str:
    return f"{uri.rstrip('/')}/{name}"


def _unfinished_name(address: str, holder: int | str) -> str:
    path = PurePosixPath(address)
    return str(path.with_name(f"_{path.stem}.{holder}{path.suffix}"))


class LocalFolder:
    """A folder of this machine, or one that is mounted here."""

    def __init__(self, uri: str, root: Path) -> None:
        self.uri, self._root = uri, root

    def footer(self, address: str) -> ParquetFooter | None:
        path = self._root / address
        return read_footer(path) if path.exists() else None

    def write(self, address: str, holder: int, fill: Fill, before_it_shows: Callable[[], None]) -> None:
        target = self._root / address
        self._make(target.parent)
        for left in target.parent.glob(_unfinished_name(target.name, "*")):
            left.unlink(missing_ok=True)
        own = self._root / _unfinished_name(address, holder)
        try:
            with own.open("xb") as out:
                fill(out)
                out.flush()
                os.fsync(out.fileno())
            before_it_shows()
            own.replace(target)
        except BaseException:
            own.unlink(missing_ok=True)
            raise
        _sync_folder(target.parent)

    def folders(self, address: str) -> list[str]:
        path = self._root / address
        return sorted(each.name for each in os.scandir(path) if each.is_dir()) if path.is_dir() else []

    def files(self, address: str) -> list[FileEntry]:
        path = self._root / address
        found = []
        for each in os.scandir(path) if path.is_dir() else ():
            if each.is_file():
                told = each.stat()
                at = datetime.fromtimestamp(told.st_mtime, UTC)
                found.append(FileEntry(f"{address}/{each.name}".lstrip("/"), told.st_size, at))
        return sorted(found, key=lambda entry: entry.address)

    def open(self, address: str) -> Any:
        return self._root / address

    def delete(self, address: str) -> None:
        (self._root / address).unlink(missing_ok=True)

    def delete_empty(self, address: str) -> bool:
        try:
            (self._root / address).rmdir()
        except OSError:
            return not (self._root / address).exists()
        return True

    def _make(self, folder: Path) -> None:
        """With its parents, durably."""
        made = [each for each in (folder, *folder.parents) if not each.exists()]
        folder.mkdir(parents=True, exist_ok=True)
        for each in made:
            _sync_folder(each.parent)


class RemoteStore:
    """Store that PyArrow reaches. ``renames``: HDFS, which has no atomic PUT, but a rename."""

    def __init__(self, uri: str, files: Any, root: str, *, renames: bool) -> None:
        self.uri, self._files, self._root, self._renames = uri, files, root.rstrip("/"), renames

    def footer(self, address: str) -> ParquetFooter | None:
        if not self._is_file(address):
            return None
        with self._files.open_input_file(self._path(address)) as source:
            return read_footer(source)

    def write(self, address: str, holder: int, fill: Fill, before_it_shows: Callable[[], None]) -> None:
        # Complete before the first byte leaves: closing a stream completes the object, also after a failure.
        buffer = io.BytesIO()
        fill(buffer)
        if not self._renames:
            before_it_shows()
            self._put(address, buffer)
            return
        folder = str(PurePosixPath(address).parent)
        self._files.create_dir(self._path(folder), recursive=True)
        unfinished = PurePosixPath(_unfinished_name(address, "")).stem
        for entry in self.files(folder):
            if PurePosixPath(entry.address).name.startswith(unfinished):
                self.delete(entry.address)
        own = _unfinished_name(address, holder)
        try:
            self._put(own, buffer)
            before_it_shows()
            self.delete(address)  # only one that is not whole: HDFS renames onto nothing
            self._files.move(self._path(own), self._path(address))
        except BaseException:
            self.delete(own)
            raise

    def folders(self, address: str) -> list[str]:
        return sorted(info.base_name for info in self._infos(address) if info.type.name == "Directory")

    def files(self, address: str) -> list[FileEntry]:
        found = [
            FileEntry(f"{address}/{info.base_name}".lstrip("/"), info.size, info.mtime or datetime.now(UTC))
            for info in self._infos(address)
            if info.type.name == "File"
        ]
        return sorted(found, key=lambda entry: entry.address)

    def open(self, address: str) -> Any:
        return self._files.open_input_file(self._path(address))

    def delete(self, address: str) -> None:
        if self._is_file(address):
            self._files.delete_file(self._path(address))

    def delete_empty(self, address: str) -> bool:
        if self._infos(address):
            return False
        if self._files.get_file_info(self._path(address)).type.name == "Directory":
            self._files.delete_dir(self._path(address))
        return True

    def _put(self, address: str, buffer: io.BytesIO) -> None:
        with self._files.open_output_stream(self._path(address)) as out:
            out.write(buffer.getbuffer())

    def _infos(self, address: str) -> list[Any]:
        from pyarrow.fs import FileSelector

        found: list[Any] = self._files.get_file_info(FileSelector(self._path(address), allow_not_found=True))
        return found

    def _is_file(self, address: str) -> bool:
        return bool(self._files.get_file_info(self._path(address)).is_file)

    def _path(self, address: str) -> str:
        return f"{self._root}/{address}" if address else self._root


def walk_folders(place_: StoragePlace, kind: str) -> Iterator[tuple[str, list[FileEntry]]]:
    """Folders of hours with what is in them, oldest first; one listing for each, none of the whole place."""
    for day in place_.folders(kind):
        for hour in place_.folders(f"{kind}/{day}"):
            yield f"{kind}/{day}/{hour}", place_.files(f"{kind}/{day}/{hour}")


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


__all__ = [
    "FileEntry",
    "LocalFolder",
    "PlaceUnknown",
    "RemoteStore",
    "StoragePlace",
    "UnreadableFacts",
    "join_uri",
    "open_place",
    "walk_folders",
]
