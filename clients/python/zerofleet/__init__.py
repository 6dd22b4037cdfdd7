"""Client of the zerofleet API: training jobs over HTTP."""

from . import schemas
from .asynchronous import AsyncZerofleet
from .client import Zerofleet
from .datasets import announcement
from .errors import (
    ApiError,
    CallFailed,
    ConnectionFailed,
    ContentMismatch,
    WaitTimeout,
    ZerofleetError,
)
from .retry import RetryPolicy
from .session import Call, Session
from .version import __version__

__all__ = [
    "ApiError",
    "AsyncZerofleet",
    "Call",
    "CallFailed",
    "ConnectionFailed",
    "ContentMismatch",
    "RetryPolicy",
    "Session",
    "WaitTimeout",
    "Zerofleet",
    "ZerofleetError",
    "__version__",
    "announcement",
    "schemas",
]
