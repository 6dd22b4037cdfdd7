"""Downloads of checkpoints and exports, which continue after an interruption."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path, PurePosixPath
from typing import List, Optional, Union

from .errors import ConnectionFailed, ContentMismatch
from .operations import CheckpointsOperations
from .schemas import CheckpointId, DownloadFile, DownloadRequest
from .streams import ByteStream

CHUNK_BYTES = 1 << 20


class Checkpoints(CheckpointsOperations):
    def download(
        self,
        checkpoint_id: CheckpointId,
        folder: Union[str, "os.PathLike[str]"],
        body: Optional[DownloadRequest] = None,
    ) -> List[Path]:
        """Downloads the files of a checkpoint, or with `format` of one of its exports, and compares their SHA-256.
        Files that are complete are kept; `NAME.part` continues where it ended. Returns the paths, in the API's order.
        """
        files = self.create_download_urls(checkpoint_id, body or {})["files"]
        return [self._save(file, _inside(Path(folder), file["name"])) for file in files]

    def _save(self, file: DownloadFile, path: Path) -> Path:
        if path.exists() and _sha256(path) == file["sha256"]:
            return path
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f"{path.name}.part")
        have = part.stat().st_size if part.exists() else 0
        while have < file["bytes"]:
            try:
                self._append(file, part, have)
            except ConnectionFailed:
                # A connection that breaks after some bytes continues; opening has its own retries.
                if not part.exists() or part.stat().st_size == have:
                    raise
            else:
                break
            have = part.stat().st_size
        part.touch()
        if _sha256(part) != file["sha256"]:
            part.unlink()
            raise ContentMismatch(f"{file['name']}: the content is not the one that the API listed")
        os.replace(part, path)
        return path

    def _append(self, file: DownloadFile, part: Path, begin: int) -> None:
        with self._opened(file, begin) as content, part.open("ab") as target:
            for chunk in content:
                target.write(chunk)

    def _opened(self, file: DownloadFile, begin: int) -> ByteStream:
        """A path of the API is read with the key, any other URL without."""
        ranged = {"Range": f"bytes={begin}-"} if begin > 0 else {}
        if file["url"].startswith("/"):
            return self._http.open("GET", file["url"], headers=ranged)
        return ByteStream(self._http.outside("GET", file["url"], ranged))


def _inside(folder: Path, name: str) -> Path:
    """A file's path in the folder, whatever the server calls it."""
    parts = PurePosixPath(name).parts
    if not parts or ".." in parts or PurePosixPath(name).is_absolute():
        raise ContentMismatch(f"{name!r} is no name inside a folder")
    return folder.joinpath(*parts)


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        for chunk in iter(lambda: file.read(CHUNK_BYTES), b""):
            digest.update(chunk)
    return digest.hexdigest()
