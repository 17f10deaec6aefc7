"""Static files, compressed for browsers that accept gzip.

A process compresses copies of the files when it starts, in a temporary folder of its own: nothing has to be
collected before a start, and no copy outlives a change of its file. Pages are not compressed, since they hold a CSRF
token beside text that comes from outside (BREACH).
"""

from __future__ import annotations

import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from servestatic.compress import Compressor
from servestatic.middleware import ServeStaticMiddleware


class CompressedStaticFiles(ServeStaticMiddleware):  # type: ignore[misc]  # servestatic declares no types
    """The middleware of servestatic, which sends ``FILE.gz`` where one lies beside ``FILE``."""

    def get_static_file(self, path: str, url: str, stat_cache: Any = None) -> Any:
        if self.autorefresh:
            return super().get_static_file(path, url, stat_cache)
        return super().get_static_file(_compress_copy(path), url)


@cache
def _compress_copy(path: str) -> str:
    copy = Path(tempfile.mkdtemp(dir=_open_folder().name), Path(path).name)
    shutil.copy2(path, copy)  # with its time, which is in the headers
    compressor = Compressor(quiet=True)
    if compressor.should_compress(copy.name):
        compressor.compress(copy)
    return str(copy)


@cache
def _open_folder() -> tempfile.TemporaryDirectory[str]:
    """Return the folder of this process, removed when the process ends."""
    return tempfile.TemporaryDirectory(prefix="kafkadash-static-")
