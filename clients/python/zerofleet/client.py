"""The client: resources, and the server that it speaks to."""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import Any, Mapping, Optional, Type

import httpx

from .checkpoints import Checkpoints
from .datasets import Datasets, Uploads
from .errors import ZerofleetError
from .jobs import Jobs
from .operations import (
    ApiKeysOperations,
    ModelsOperations,
    ProjectsOperations,
    ServiceOperations,
    WebhooksOperations,
)
from .retry import RetryPolicy
from .schemas import Job, JobId
from .session import Session
from .sweeps import Sweeps
from .training import Data, Method, document, session_document
from .transport import Transport


class Zerofleet(ServiceOperations):
    """Client of the API.

    `base_url`: by default ZEROFLEET_URL, else the address file beside the key file, else http://127.0.0.1:8080.
    `api_key`: by default ZEROFLEET_API_KEY, else the key file of a stack on this machine. `http_transport` replaces
    httpx' own, for a proxy or a test.
    """

    def __init__(
        self,
        base_url: Optional[str] = None,
        api_key: Optional[str] = None,
        *,
        retry: RetryPolicy = RetryPolicy(),
        http_transport: Optional[httpx.BaseTransport] = None,
    ) -> None:
        key = api_key or os.environ.get("ZEROFLEET_API_KEY")
        # A given key is not sent to an address that a file of some directory names.
        stored = None if key else _read_data("address")
        url = base_url or os.environ.get("ZEROFLEET_URL") or stored or "http://127.0.0.1:8080"
        super().__init__(Transport(url, key or _stored_key(), retry, http_transport))
        self.jobs = Jobs(self._http)
        self.checkpoints = Checkpoints(self._http)
        self.uploads = Uploads(self._http)
        self.datasets = Datasets(self._http, self.uploads)
        self.models = ModelsOperations(self._http)
        self.api_keys = ApiKeysOperations(self._http)
        self.sweeps = Sweeps(self._http)
        self.webhooks = WebhooksOperations(self._http)
        self.projects = ProjectsOperations(self._http)

    def __enter__(self) -> Zerofleet:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Zerofleet({self._http!r})"

    def train(
        self,
        data: Data,
        model: str = "llama-tiny",
        *,
        method: Method = "full",
        name: Optional[str] = None,
        watch: bool = False,
        fields: Optional[Mapping[str, Any]] = None,
        **train: Any,
    ) -> Job:
        """Creates a job for data and a base. `data`: the path of a file, which is uploaded, the name or id of a
        dataset, or a URI. `model`: a preset, `hf://owner/name`, an uploaded model, or a job or `JOB@STEP` to begin
        with. `train` has fields of the document's section, such as `epochs`, 3 by default; `fields` has other
        sections. With `watch` the progress is shown until the job has ended."""
        spec = document(
            self._http,
            self.datasets,
            data,
            model=model,
            method=method,
            name=name,
            train=train,
            fields=fields or {},
        )
        job = self.jobs.create(spec)
        return self.jobs.watch(job["id"]) if watch else job

    def session(
        self,
        model: str = "llama-tiny",
        *,
        method: Method = "full",
        name: Optional[str] = None,
        idle_seconds: Optional[int] = None,
        fields: Optional[Mapping[str, Any]] = None,
        **train: Any,
    ) -> Session:
        """Creates a session: a job whose steps come from calls. `model`, `method`, `fields` and `train` are those of
        `train`. Without calls for `idle_seconds`, 900 by default, the session is paused until the next call."""
        spec = session_document(
            self._http,
            model=model,
            method=method,
            name=name,
            idle_seconds=idle_seconds,
            train=train,
            fields=fields or {},
        )
        return self.open_session(self.jobs.create(spec)["id"])

    def open_session(self, job_id: JobId) -> Session:
        """Continues a session after its last call."""
        return Session(self.jobs, job_id)

    def close(self) -> None:
        """Closes the connections."""
        self._http.close()


def _stored_key() -> str:
    """The key in the data directory of a stack on this machine."""
    stored = _read_data("api-key")
    if stored:
        return stored
    raise ZerofleetError(
        f"no API key: set ZEROFLEET_API_KEY, pass api_key, or run this where {_data_file('api-key')} exists"
    )


def _data_file(name: str) -> Path:
    return Path(os.environ.get("ZEROFLEET_DATA_DIR") or ".zerofleet") / name


def _read_data(name: str) -> Optional[str]:
    """A file that a stack on this machine has written."""
    try:
        return _data_file(name).read_text(encoding="utf-8").strip()
    except OSError:
        return None
