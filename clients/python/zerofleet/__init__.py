"""Client of the zerofleet API: training jobs over HTTP."""

from . import schemas
from .asynchronous import AsyncZerofleet
from .client import Zerofleet
from .datasets import announcement
from .errors import ApiError, ConnectionFailed, ContentMismatch, WaitTimeout, ZerofleetError
from .retry import RetryPolicy
from .version import __version__

__all__ = [
    "ApiError",
    "AsyncZerofleet",
    "ConnectionFailed",
    "ContentMismatch",
    "RetryPolicy",
    "WaitTimeout",
    "Zerofleet",
    "ZerofleetError",
    "__version__",
    "announcement",
    "schemas",
]
