"""A training session: a job whose steps come from calls."""

from __future__ import annotations

import threading
import time
from typing import Any, Dict, Iterable, List, Mapping, Optional

from .errors import ApiError, CallFailed, WaitTimeout
from .jobs import Jobs
from .schemas import JobId

WAIT_SECONDS = 30
MAX_PENDING = 64
"""Calls without a result that the server allows."""


class Call:
    """A call that the session has stored. Its result comes later."""

    def __init__(self, jobs: Jobs, job_id: JobId, number: int) -> None:
        self._jobs = jobs
        self._job_id = job_id
        self.number = number
        self._result: Optional[Any] = None

    def result(self, timeout: Optional[float] = None) -> Any:
        """Waits for the result. Raises CallFailed if the call could not be done, and WaitTimeout after `timeout`
        seconds; the call goes on."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self._read(WAIT_SECONDS if deadline is None else deadline - time.monotonic()):
            if deadline is not None and time.monotonic() >= deadline:
                raise WaitTimeout(f"call {self.number} has no result after {timeout} seconds")
        if isinstance(self._result, dict) and "error" in self._result:
            raise CallFailed(self.number, **self._result["error"])
        return self._result

    def done(self) -> bool:
        """True if the result exists."""
        return self._read(0)

    def _read(self, seconds: float) -> bool:
        if self._result is None:
            wait = max(0, min(WAIT_SECONDS, int(seconds + 0.999)))
            answer = self._jobs.get_call_result(self._job_id, self.number, wait_seconds=wait)
            self._result = answer.get("result")
        return self._result is not None

    def __repr__(self) -> str:
        return f"<Call {self.number} of {self._job_id}>"


class Session:
    """Appends calls to a session, numbered and in their order. Threads may share it.

    Each method returns as soon as the server has stored the call. A request whose answer is lost is sent again under
    its number, so no call is done twice.
    """

    def __init__(self, jobs: Jobs, job_id: JobId) -> None:
        self.job_id = job_id
        self._jobs = jobs
        self._lock = threading.Lock()
        newest = next(jobs.list_calls(job_id, limit=1), None)
        self._next = 1 if newest is None else newest["number"] + 1

    def forward_backward(
        self, rows: Iterable[Mapping[str, Any]], loss: str = "cross_entropy", **settings: Any
    ) -> Call:
        """Adds the gradients of the summed loss of `rows` to those of the step. A row has `tokens`, `targets`, and
        what its loss reads; `settings` are fields of the loss, such as `clip_low`."""
        return self._pass("forward_backward", rows, loss, settings)

    def forward(self, rows: Iterable[Mapping[str, Any]], loss: str = "cross_entropy", **settings: Any) -> Call:
        """The loss and the log-probabilities of `rows`, without gradients."""
        return self._pass("forward", rows, loss, settings)

    def optim_step(self, **update: Any) -> Call:
        """Updates the weights with the gradients since the last update. `update` has `lr` and other fields that replace
        those of the job's document."""
        return self._append({"type": "optim_step", **update})

    def sample(self, prompts: Iterable[Any], max_tokens: int, **settings: Any) -> Call:
        """Tokens that the current weights generate after each prompt, a list of tokens. `settings`: `n`, `temperature`,
        `top_p`, `top_k`, `seed`, `stop_tokens`, `stop_texts`."""
        given = [_plain(prompt) for prompt in prompts]
        return self._append({"type": "sample", "prompts": given, "max_tokens": max_tokens, **settings})

    def save_state(self) -> Call:
        """Saves a checkpoint."""
        return self._append({"type": "save_state"})

    def load_state(self, checkpoint: str, *, optimizer: bool = True) -> Call:
        """Continues from a checkpoint of this session; without `optimizer` with its weights alone."""
        return self._append({"type": "load_state", "checkpoint": checkpoint, "optimizer": optimizer})

    def finish(self) -> Call:
        """Saves the state and ends the session; the job succeeds."""
        return self._append({"type": "finish"})

    def __repr__(self) -> str:
        return f"<Session {self.job_id}>"

    def _pass(self, kind: str, rows: Iterable[Mapping[str, Any]], loss: str, settings: Dict[str, Any]) -> Call:
        given: List[Dict[str, Any]] = [{name: _plain(values) for name, values in row.items()} for row in rows]
        return self._append({"type": kind, "loss": {"type": loss, **settings}, "rows": given})

    def _append(self, call: Any) -> Call:
        with self._lock:
            number = self._next
            while True:
                try:
                    self._jobs.put_call(self.job_id, number, call)
                    break
                except ApiError as error:
                    if error.code != "too_many_calls":
                        raise
                self._jobs.get_call_result(self.job_id, number - MAX_PENDING, wait_seconds=WAIT_SECONDS)
            self._next = number + 1
            return Call(self._jobs, self.job_id, number)


def _plain(values: Any) -> Any:
    """A list for an array of numpy or torch."""
    return values.tolist() if hasattr(values, "tolist") else list(values)
