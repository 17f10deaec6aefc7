"""The folder of the pipeline, wherever it is: small files, names and footers. Rows are read and written by Spark."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from kafkadash.pipeline.errors import PipelineErrorCode
from kafkadash.pipeline.faults import PipelineFault

if TYPE_CHECKING:
    from pyarrow import NativeFile
    from pyarrow.fs import FileSystem

# Spark's names of what Arrow calls s3.
_S3 = ("s3a", "s3n", "s3")


@dataclass(frozen=True)
class PipelineStore:
    """``uri``: as Spark takes it, without a slash at the end. Names are relative, parts joined with /."""

    uri: str
    files: FileSystem
    path: str

    @property
    def local(self) -> bool:
        return self.uri.startswith("file:")

    def address(self, name: str) -> str:
        """For Spark."""
        return f"{self.uri}/{name}"

    def name(self, address: str) -> str:
        """Return the name for an address from Spark, which writes file:/x where others write file:///x."""
        return urlsplit(address).path.partition(f"{urlsplit(self.uri).path}/")[2]

    def open(self, name: str) -> NativeFile:
        """Raises OSError."""
        return self.files.open_input_file(f"{self.path}/{name}")

    def read(self, name: str) -> bytes | None:
        """None where there is no such file. Raises OSError."""
        try:
            with self.open(name) as file:
                return bytes(file.read())
        except FileNotFoundError:
            return None

    def write(self, name: str, content: bytes) -> None:
        """Write the file completely or not at all: beside it and renamed where renaming is no copy, else by one PUT."""
        folder, _, last = name.rpartition("/")
        if not self.object_store:
            self.files.create_dir(f"{self.path}/{folder}", recursive=True)
            name = f"{folder}/_{last}"
        with self.files.open_output_stream(f"{self.path}/{name}") as file:
            file.write(content)
        if not self.object_store:
            self.files.move(f"{self.path}/{name}", f"{self.path}/{folder}/{last}")

    @property
    def object_store(self) -> bool:
        return urlsplit(self.uri).scheme in _S3

    def names(self, folder: str) -> list[str]:
        """Return the names directly in the folder, sorted; an empty list if it does not exist. Raises OSError."""
        return sorted(info.base_name for info in self._found(folder, recursive=False))

    def sizes(self, folder: str) -> dict[str, int]:
        """Name → bytes of every file below."""
        start = len(self.path) + 1
        return {info.path[start:]: info.size for info in self._found(folder, recursive=True) if info.is_file}

    def remove(self, folder: str) -> None:
        """With all that is in it; nothing happens where it is not."""
        if self.has(folder):
            self.files.delete_dir(f"{self.path}/{folder}")

    def remove_file(self, name: str) -> None:
        try:
            self.files.delete_file(f"{self.path}/{name}")
        except FileNotFoundError:
            return

    def move(self, folder: str, to: str) -> None:
        self.files.create_dir(f"{self.path}/{to}".rpartition("/")[0], recursive=True)
        self.files.move(f"{self.path}/{folder}", f"{self.path}/{to}")

    def has(self, name: str) -> bool:
        from pyarrow.fs import FileType

        (info,) = self.files.get_file_info([f"{self.path}/{name}"])
        return bool(info.type != FileType.NotFound)

    def make(self, folder: str) -> None:
        if not self.object_store:
            self.files.create_dir(f"{self.path}/{folder}", recursive=True)

    def _found(self, folder: str, *, recursive: bool) -> Iterator[Any]:
        from pyarrow.fs import FileSelector

        chosen = FileSelector(f"{self.path}/{folder}", allow_not_found=True, recursive=recursive)
        return iter(self.files.get_file_info(chosen))


def open_store(uri: str) -> PipelineStore:
    """Raises PipelineFault for an address that is none, or behind which nobody answers."""
    store = store_at(uri)
    from pyarrow import ArrowException

    try:
        store.make("checkpoints")
        store.names("checkpoints")
    except (OSError, ArrowException) as error:
        raise _build_fault(uri, error) from error
    return store


def store_at(uri: str) -> PipelineStore:
    """Without a look whether it is there: for tasks of a job, whose driver has looked. Raises PipelineFault."""
    try:
        from pyarrow import ArrowException
        from pyarrow.fs import FileSystem
    except ImportError:
        raise PipelineFault(PipelineErrorCode.NO_PYARROW) from None
    parts = urlsplit(uri)
    scheme = "s3" if parts.scheme in _S3 else parts.scheme
    if scheme not in ("file", "s3", "hdfs"):
        raise PipelineFault(PipelineErrorCode.ADDRESS_UNUSABLE, address=uri)
    uri = uri.rstrip("/")
    try:
        files, path = FileSystem.from_uri(f"{scheme}:{uri.partition(':')[2]}")
    except (OSError, ArrowException) as error:
        raise _build_fault(uri, error) from error
    return PipelineStore(uri, files, path)


def _build_fault(uri: str, error: Exception) -> PipelineFault:
    fault = str(error).splitlines()[0].rstrip(".")
    return PipelineFault(PipelineErrorCode.ADDRESS_UNREACHABLE, address=uri.rstrip("/"), fault=fault)
