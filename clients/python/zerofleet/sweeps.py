"""Sweeps: waiting, beside the API's operations."""

from __future__ import annotations

import time
from typing import Optional

from .errors import WaitTimeout
from .operations import SweepsOperations
from .schemas import Sweep, SweepId

POLL_SECONDS = 1.0


class Sweeps(SweepsOperations):
    def wait(self, sweep_id: SweepId, *, timeout: Optional[float] = None) -> Sweep:
        """Waits until a sweep has ended. Raises WaitTimeout after `timeout` seconds; the sweep goes on."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            sweep = self.get(sweep_id)
            if sweep["ended_at"] is not None:
                return sweep
            if deadline is not None and time.monotonic() >= deadline:
                raise WaitTimeout(f"{sweep_id} is {sweep['state']} after {timeout} seconds")
            time.sleep(POLL_SECONDS)
