"""Where segments are written, by URI: a folder of this machine, HDFS, or an object store.

A file appears under its name whole or not at all. In folders and in HDFS it is written under a name that begins with
``_`` and then renamed; an object store shows a PUT when it is complete, and a rename there is a copy. Whoever writes an
address first takes away what another left behind under a ``_`` name of it: so a writer that slept finds nothing to
rename (docs/adr, "Facts leave through an outbox").
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

from kafkadash.domain.errors import UserError
from kafkadash.observe.errors import CollectionErrorCode
from kafkadash.observe.segments.encoding import Footer, Unreadable, footer

Fill = Callable[[IO[bytes]], None]
_PUT = ("s3",)
_KNOWN = (*_PUT, "hdfs")


class PlaceUnknown(UserError):
    """A URI that leads to no place for segments; the text is a sentence."""


@dataclass(frozen=True, slots=True)
class Entry:
    """Of a listing; ``address`` is below the place."""

    address: str
    size: int
    modified_at: datetime


class Place(Protocol):
    """Addresses are relative, with ``/``. Everything here raises OSError where the place cannot be used."""

    uri: str

    def footer(self, address: str) -> Footer | None:
        """Of a whole file; None where there is none of that name. Raises Unreadable for one that is not whole."""
        ...

    def write(self, address: str, holder: int, fill: Fill, before_it_shows: Callable[[], None]) -> None:
        """Writes a file, or replaces one. ``before_it_shows`` may raise: then nothing shows. ``holder`` is the epoch
        of the lease under which this is written.
        """
        ...

    def folders(self, address: str) -> list[str]:
        """Names of what is directly below, if these are folders, sorted; none where there is no such folder."""
        ...

    def files(self, address: str) -> list[Entry]:
        """Files directly in a folder, sorted, also those that are being written."""
        ...

    def open(self, address: str) -> Any:
        """Something that PyArrow can read."""
        ...

    def delete(self, address: str) -> None:
        """Of a file. One that is gone already is fine."""
        ...

    def delete_empty(self, address: str) -> bool:
        """Of a folder; False where something is in it."""
        ...


def place(uri: str) -> Place:
    """Raises PlaceUnknown."""
    parts = urlsplit(uri)
    if parts.scheme in ("file", "") and parts.path:
        if parts.netloc not in ("", "localhost"):
            raise PlaceUnknown(
                CollectionErrorCode.PLACE_UNKNOWN, uri=uri, fault=f"file: is this machine, not {parts.netloc}"
            )
        return Folder(uri, Path(unquote(parts.path)))
    from pyarrow import ArrowException
    from pyarrow.fs import FileSystem

    # Where the pipeline does not read, segments would only pile up. Spark calls it s3a, PyArrow s3.
    arrows = f"s3{uri[3:]}" if parts.scheme in ("s3a", "s3n") else uri
    if urlsplit(arrows).scheme not in _KNOWN:
        raise PlaceUnknown(
            CollectionErrorCode.PLACE_UNKNOWN, uri=uri, fault=f"“{parts.scheme}” is not read by the pipeline"
        )
    try:
        files, path = FileSystem.from_uri(arrows)
    except (ArrowException, OSError, ValueError) as error:
        fault = str(error).splitlines()[0].rstrip(".")
        raise PlaceUnknown(CollectionErrorCode.PLACE_UNKNOWN, uri=uri, fault=fault) from error
    if not path.strip("/"):
        raise PlaceUnknown(CollectionErrorCode.PLACE_UNKNOWN, uri=uri, fault="it names no bucket and no folder")
    return Remote(uri, files, path, renames=urlsplit(arrows).scheme not in _PUT)


def below(uri: str, name: str) -> str:
    return f"{uri.rstrip('/')}/{name}"


def _unfinished(address: str, holder: int | str) -> str:
    path = PurePosixPath(address)
    return str(path.with_name(f"_{path.stem}.{holder}{path.suffix}"))


class Folder:
    """A folder of this machine, or one that is mounted here."""

    def __init__(self, uri: str, root: Path) -> None:
        self.uri, self._root = uri, root

    def footer(self, address: str) -> Footer | None:
        path = self._root / address
        return footer(path) if path.exists() else None

    def write(self, address: str, holder: int, fill: Fill, before_it_shows: Callable[[], None]) -> None:
        target = self._root / address
        self._make(target.parent)
        for left in target.parent.glob(_unfinished(target.name, "*")):
            left.unlink(missing_ok=True)
        own = self._root / _unfinished(address, holder)
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
        _sync(target.parent)

    def folders(self, address: str) -> list[str]:
        path = self._root / address
        return sorted(each.name for each in os.scandir(path) if each.is_dir()) if path.is_dir() else []

    def files(self, address: str) -> list[Entry]:
        path = self._root / address
        found = []
        for each in os.scandir(path) if path.is_dir() else ():
            if each.is_file():
                told = each.stat()
                at = datetime.fromtimestamp(told.st_mtime, UTC)
                found.append(Entry(f"{address}/{each.name}".lstrip("/"), told.st_size, at))
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
            _sync(each.parent)


class Remote:
    """What PyArrow reaches; ``renames``: HDFS, which has no whole PUT, but a rename."""

    def __init__(self, uri: str, files: Any, root: str, *, renames: bool) -> None:
        self.uri, self._files, self._root, self._renames = uri, files, root.rstrip("/"), renames

    def footer(self, address: str) -> Footer | None:
        if not self._is_file(address):
            return None
        with self._files.open_input_file(self._path(address)) as source:
            return footer(source)

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
        unfinished = PurePosixPath(_unfinished(address, "")).stem
        for entry in self.files(folder):
            if PurePosixPath(entry.address).name.startswith(unfinished):
                self.delete(entry.address)
        own = _unfinished(address, holder)
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

    def files(self, address: str) -> list[Entry]:
        found = [
            Entry(f"{address}/{info.base_name}".lstrip("/"), info.size, info.mtime or datetime.now(UTC))
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


def walk(place_: Place, kind: str) -> Iterator[tuple[str, list[Entry]]]:
    """Folders of hours with what is in them, oldest first; one listing for each, none of the whole place."""
    for day in place_.folders(kind):
        for hour in place_.folders(f"{kind}/{day}"):
            yield f"{kind}/{day}/{hour}", place_.files(f"{kind}/{day}/{hour}")


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


__all__ = ["Entry", "Folder", "Place", "PlaceUnknown", "Remote", "Unreadable", "below", "place", "walk"]
