"""Progress of a job: a bar of tqdm where it is installed, in terminals and notebooks; otherwise lines."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any, Optional

from .schemas import Job, JobMetric

try:
    # Not an import statement: types of tqdm are a package of its own.
    _tqdm: Any = import_module("tqdm.auto").tqdm
except ImportError:
    _tqdm = None


class Progress:
    """Shows the steps of one job. Without tqdm, a line for each tenth of the work."""

    def __init__(self, job: Job) -> None:
        self._name = job["name"] or job["id"]
        self._bar: Any = None
        self._tenth = -1
        self._state: Optional[str] = None
        self._total: Optional[int] = job["progress"]["total_steps"]
        if _tqdm is not None:
            self._bar = _tqdm(
                total=self._total, initial=job["progress"]["step"], desc=self._name, unit="step"
            )

    def state(self, job: Job) -> None:
        """Shows the state, and the number of steps once it is known."""
        self._total = job["progress"]["total_steps"]
        if self._bar is None:
            # The stream also has changes before the first state that was shown.
            if job["state"] != self._state:
                self._print(job["state"])
            self._state = job["state"]
            return
        self._bar.total = self._total
        self._bar.set_description(f"{self._name} {job['state']}")

    def metric(self, metric: JobMetric) -> None:
        loss = metric["loss"]
        text = "NaN" if loss is None else f"{loss:.4f}"
        step = metric["step"]
        if self._bar is not None:
            self._bar.set_postfix_str(f"loss {text}", refresh=False)
            # After a recovery, steps are repeated.
            self._bar.update(step - self._bar.n)
            return
        tenth = 0 if not self._total else 10 * step // self._total
        if tenth != self._tenth:
            self._tenth = tenth
            self._print(f"step {step}/{self._total or '?'}  loss {text}")

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()

    def _print(self, text: str) -> None:
        print(f"{self._name}: {text}", file=sys.stderr, flush=True)
