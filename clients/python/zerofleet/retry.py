"""When a request is sent again, and after which pause."""

from __future__ import annotations

import random
from dataclasses import dataclass

import httpx

RETRIED_STATUSES = (429, 502, 503, 504)
"""Statuses of a server or proxy that are retried."""


@dataclass(frozen=True)
class RetryPolicy:
    """Number and backoff of attempts."""

    tries: int = 5
    """Attempts in total, at least 1."""
    first_seconds: float = 0.2
    """Pause after the first attempt; doubles with each attempt."""
    max_seconds: float = 5.0
    """Maximum pause, unless `Retry-After` is longer."""

    def pause_after(self, attempt: int) -> float:
        """Seconds, random between half and all of the backoff, to spread clients."""
        backoff = min(self.max_seconds, self.first_seconds * 2.0 ** (attempt - 1))
        return backoff * (0.5 + random.random() / 2)


def is_idempotent(request: httpx.Request) -> bool:
    return (
        request.method in ("GET", "HEAD", "PUT", "DELETE") or "idempotency-key" in request.headers
    )


def is_retryable(response: httpx.Response) -> bool:
    """A temporary conflict, such as a request still in progress, has `Retry-After`. A status without it, which a
    proxy may have sent, does not say what was done."""
    asked = "retry-after" in response.headers
    if response.status_code == 409:
        return asked
    return response.status_code in RETRIED_STATUSES and (asked or is_idempotent(response.request))


def retry_after(response: httpx.Response) -> float:
    """`Retry-After` in seconds, the only form that the API sends; 0 for none."""
    value = response.headers.get("retry-after", "")
    return float(value) if value.isdigit() else 0.0
