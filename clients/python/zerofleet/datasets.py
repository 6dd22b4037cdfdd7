"""Uploads of datasets in parts, which continue after an interruption."""

from __future__ import annotations

import base64
import hashlib
import io
import os
import re
from typing import BinaryIO, Dict, Literal, Optional, Union

from .errors import ContentMismatch, ZerofleetError
from .operations import DatasetsOperations, UploadsOperations
from .schemas import Dataset, DatasetFormat, UploadId, UploadRequest
from .transport import Transport

Source = Union[str, "os.PathLike[str]", bytes]
"""Path of a file, or its content."""

CHUNK_BYTES = 1 << 20


class Uploads(UploadsOperations):
    def resume(
        self, upload_id: UploadId, source: Source, *, via: Literal["auto", "api"] = "auto"
    ) -> Dataset:
        """Sends the missing parts of an upload in order and completes it. `via="api"` sends all content through the
        API, for clients that cannot reach its object store."""
        upload = self.get(upload_id)
        with _opened(source) as file:
            if _size(file) != upload["bytes"]:
                raise ContentMismatch(f"{upload_id} has {upload['bytes']} bytes, the content {_size(file)}")
            received = set(upload["received_parts"])
            for part in range(1, upload["num_parts"] + 1):
                if upload["dataset_id"] is None and part not in received:
                    file.seek((part - 1) * upload["part_bytes"])
                    self._send(upload_id, part, file.read(upload["part_bytes"]), via)
        return self.complete(upload_id)

    def _send(self, upload_id: UploadId, part: int, content: bytes, via: Literal["auto", "api"]) -> None:
        """Sends a part to a presigned URL if there is one; the URL is valid for this content only."""
        if via == "auto":
            digest = base64.b64encode(hashlib.sha256(content).digest()).decode()
            [target] = self.create_urls(upload_id, {"part_numbers": [part], "sha256": [digest]})["parts"]
            if not target["url"].startswith("/"):
                self._http.outside("PUT", target["url"], target["headers"], content).close()
                return
        self.put_part(upload_id, part, content)


class Datasets(DatasetsOperations):
    def __init__(self, http: Transport, uploads: Uploads) -> None:
        super().__init__(http)
        self._uploads = uploads

    def upload(
        self,
        source: Source,
        *,
        name: Optional[str] = None,
        format: Optional[DatasetFormat] = None,
        via: Literal["auto", "api"] = "auto",
    ) -> Dataset:
        """Uploads a file in parts; the server compares the SHA-256 of the whole. By default the name is that of the
        file, and `format` follows from its extension. To continue in another process, keep the id of
        `uploads.create(announcement(…))` and call `uploads.resume`."""
        upload = self._uploads.create(announcement(source, name=name, format=format))
        return self._uploads.resume(upload["id"], source, via=via)


FORMATS: Dict[str, DatasetFormat] = {
    "jsonl": "jsonl",
    "ndjson": "jsonl",
    "json": "jsonl",
    "csv": "jsonl",
    "parquet": "jsonl",
    "tokens": "tokens",
    "bin": "tokens",
}
"""Formats by the extension of a file (contracts/dataset-names.ts has the same)."""


def format_of_name(name: str) -> DatasetFormat:
    """The format of a file by its extension, before that of a compression."""
    bare = re.sub(r"\.(gz|zst)$", "", name, flags=re.IGNORECASE)
    return FORMATS.get(bare.rsplit(".", 1)[-1].lower(), "text")


def announcement(
    source: Source, *, name: Optional[str] = None, format: Optional[DatasetFormat] = None
) -> UploadRequest:
    """Body of `uploads.create` for a file. Content that is no file needs a name."""
    if name is None:
        if isinstance(source, bytes):
            raise ZerofleetError("content that is no file needs a name: name=…")
        name = os.path.basename(os.fspath(source))
    format = format or format_of_name(name)
    digest = hashlib.sha256()
    with _opened(source) as file:
        for chunk in iter(lambda: file.read(CHUNK_BYTES), b""):
            digest.update(chunk)
        size = _size(file)
    return {"name": name, "format": format, "bytes": size, "digest": f"sha256:{digest.hexdigest()}"}


def _opened(source: Source) -> BinaryIO:
    return io.BytesIO(source) if isinstance(source, bytes) else open(source, "rb")


def _size(file: BinaryIO) -> int:
    return file.seek(0, os.SEEK_END)
