"""The folders below ``settings.PIPELINE_URI``, on a disk, HDFS or an object store, through PyArrow."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any


class NoPyArrow(Exception):
    """PyArrow is not installed on this worker."""


class StoreFailed(Exception):
    """The store did not answer as asked; what it said is the text. Nothing is known about the files."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A file; ``path`` is below the store's root, ``at`` when it was written (None where the store does not tell)."""

    path: str
    size: int
    at: datetime | None

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


class Store:
    """Raises NoPyArrow without PyArrow and StoreFailed for a URI that no file system is known for."""

    def __init__(self, uri: str) -> None:
        try:
            from pyarrow import ArrowException
            from pyarrow import fs as file_systems
        except ImportError as error:
            raise NoPyArrow from error
        self._fs = file_systems
        # Spark calls the object store s3a, PyArrow s3.
        told = "s3" + uri.removeprefix("s3a") if uri.startswith("s3a:") else uri
        try:
            system, root = file_systems.FileSystem.from_uri(told)
        except (OSError, ValueError, ArrowException) as error:
            raise StoreFailed(f"{uri}: {error}") from error
        self._system: Any = system
        self._root = root.rstrip("/")

    def files(self, folder: str, *, deep: bool = False) -> list[Entry]:
        """Those in a folder, none where there is no such folder. Names that begin with ``_`` or ``.`` are not whole."""
        selector = self._fs.FileSelector(f"{self._root}/{folder}", recursive=deep, allow_not_found=True)
        found = []
        for info in _asked(self._system.get_file_info, selector):
            below = info.path.removeprefix(f"{self._root}/")
            if info.type == self._fs.FileType.File and not any(p[:1] in "_." for p in below.split("/")):
                found.append(Entry(below, info.size, info.mtime))
        return sorted(found, key=lambda entry: entry.path)

    def folders(self, folder: str) -> list[str]:
        """Names of those in a folder, in order."""
        selector = self._fs.FileSelector(f"{self._root}/{folder}", allow_not_found=True)
        found = _asked(self._system.get_file_info, selector)
        return sorted(info.base_name for info in found if info.type == self._fs.FileType.Directory)

    def read(self, path: str) -> bytes | None:
        """The whole file, None where there is none. Raises StoreFailed."""
        try:
            with self._system.open_input_stream(f"{self._root}/{path}") as stream:
                return bytes(stream.read())
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StoreFailed(f"{path}: {error}") from error

    def delete(self, path: str) -> None:
        """A file or a folder with all in it; one that is not there is fine. Raises StoreFailed."""
        at = f"{self._root}/{path}"
        info = _asked(self._system.get_file_info, at)
        try:
            if info.type == self._fs.FileType.Directory:
                self._system.delete_dir(at)
            elif info.type == self._fs.FileType.File:
                self._system.delete_file(at)
        except FileNotFoundError:
            return
        except OSError as error:
            raise StoreFailed(f"{path}: {error}") from error


def _asked(ask: Any, what: Any) -> Any:
    try:
        return ask(what)
    except OSError as error:
        raise StoreFailed(str(error)) from error


def parts(store: Store, folder: str) -> Iterator[Entry]:
    """The Parquet files of a result."""
    return (entry for entry in store.files(folder) if entry.name.endswith(".parquet"))
