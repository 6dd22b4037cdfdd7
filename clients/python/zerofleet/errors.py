"""Exceptions of the client."""

from __future__ import annotations

from typing import List, Optional

from .schemas import FieldError, Problem


class ZerofleetError(Exception):
    """Base of the client's exceptions."""


class ApiError(ZerofleetError):
    """An answer of the API that is no success."""

    def __init__(self, request: str, status: int, problem: Optional[Problem]) -> None:
        self.status = status
        """HTTP status."""
        self.problem = problem
        """The body; None when it is not a problem document, e.g. of a proxy."""
        self.code: Optional[str] = problem["code"] if problem else None
        """Code of the catalogue (docs/errors.md), e.g. `job_not_found`."""
        self.message: str = problem["detail"] if problem else f"status {status}"
        self.details: List[FieldError] = problem["errors"] if problem else []
        """All bad fields; empty for errors that do not concern fields."""
        self.request_id: Optional[str] = problem["request_id"] if problem else None
        """Identifies the request in the server's log."""
        fields = "".join(f"\n  {field['pointer']}: {field['message']}" for field in self.details)
        super().__init__(f"{request}: {status} {self.code or ''}: {self.message}{fields}")


class ConnectionFailed(ZerofleetError):
    """No answer after all attempts, or a transfer broke. `__cause__` is the error of httpx."""


class ContentMismatch(ZerofleetError):
    """A downloaded file is not the one that the API listed, or a file is not the one of the upload."""


class CallFailed(ZerofleetError):
    """A call of a session that could not be done. The session goes on."""

    def __init__(self, number: int, code: str, message: str) -> None:
        self.number = number
        self.code = code
        """Code of the catalogue (docs/errors.md), e.g. `no_gradients`."""
        super().__init__(f"call {number}: {code}: {message}")


class WaitTimeout(ZerofleetError, TimeoutError):
    """A job did not reach the awaited state in time, or a call has no result yet."""
