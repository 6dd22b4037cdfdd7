"""The client: resources, and the server that it speaks to."""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import Optional, Type

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
from .transport import Transport


class Zerofleet(ServiceOperations):
    """Client of the API.

    `base_url`: by default ZEROFLEET_URL, else http://127.0.0.1:8080. `api_key`: by default ZEROFLEET_API_KEY, else the
    key file of a stack on this machine. `http_transport` replaces httpx' own, for a proxy or a test.
    """

    def __init__(
        self,
        base_url: Optional[str] = None,
        api_key: Optional[str] = None,
        *,
        retry: RetryPolicy = RetryPolicy(),
        http_transport: Optional[httpx.BaseTransport] = None,
    ) -> None:
        url = base_url or os.environ.get("ZEROFLEET_URL") or "http://127.0.0.1:8080"
        super().__init__(Transport(url, api_key or _find_key(), retry, http_transport))
        self.jobs = Jobs(self._http)
        self.checkpoints = Checkpoints(self._http)
        self.uploads = Uploads(self._http)
        self.datasets = Datasets(self._http, self.uploads)
        self.models = ModelsOperations(self._http)
        self.api_keys = ApiKeysOperations(self._http)
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

    def close(self) -> None:
        """Closes the connections."""
        self._http.close()


def _find_key() -> str:
    """The key of the environment, else the key in the data directory of a stack on this machine."""
    key = os.environ.get("ZEROFLEET_API_KEY")
    if key:
        return key
    file = Path(os.environ.get("ZEROFLEET_DATA_DIR") or ".zerofleet") / "api-key"
    try:
        return file.read_text(encoding="utf-8").strip()
    except OSError:
        raise ZerofleetError(
            f"no API key: set ZEROFLEET_API_KEY, pass api_key, or run this where {file} exists"
        ) from None
