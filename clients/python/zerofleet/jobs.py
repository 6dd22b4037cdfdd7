"""Jobs: following and waiting, beside the API's operations."""

from __future__ import annotations

import json
import time
from importlib import import_module
from typing import Any, Callable, Container, Iterator, List, Literal, Optional, TypedDict, Union

from .errors import ConnectionFailed, WaitTimeout, ZerofleetError
from .names import LOOKS_LIKE_ID, find_id
from .operations import JobsOperations
from .progress import Progress
from .schemas import Job, JobEvent, JobId, JobLog, JobMetric, JobState

StreamEntry = Union[JobEvent, JobMetric, JobLog]
"""An entry of a job's stream; its `kind` tells which."""

FINAL_STATES = ("succeeded", "failed", "cancelled")

REOPEN_SECONDS = 0.2
"""Delay before a broken stream is reopened, unless the server sends another; opening has its own retries."""

LONG_POLL_SECONDS = 30.0


ANSWERS = ("samples.answered", "samples.failed")
"""Events that report answers of checkpoints."""


class StepAnswers(TypedDict):
    """Answers of a checkpoint to the prompts of its job's document, in their order."""

    step: int
    checkpoint_id: str
    answers: List[str]
    error: Optional[str]
    """Why the checkpoint did not answer; None if it did."""


class Jobs(JobsOperations):
    def follow(
        self,
        job_id: JobId,
        *,
        after: Optional[str] = None,
        kinds: Optional[List[Literal["event", "metric", "log"]]] = None,
    ) -> Iterator[StreamEntry]:
        """Events, metrics and log lines of a job live, each once and in order, until the job has ended. A broken
        stream resumes after the last entry. After a loss of Redis it restarts from the beginning of the recovered
        entries, and `seq` counts from 1 again. `after`: only entries after the one with this `position`."""
        job_id = self._id(job_id)
        position = after
        while True:
            reopen = REOPEN_SECONDS
            with self.stream(job_id, last_event_id=position or None, kinds=kinds) as stream:
                try:
                    for message in stream.events():
                        if message.event == "end":
                            return
                        reopen = reopen if message.retry_seconds is None else message.retry_seconds
                        position = position if message.id is None else message.id
                        # The entries were lost with the server's Redis; the id is empty, the recovered ones follow.
                        if message.event != "reset":
                            yield json.loads(message.data)
                except ConnectionFailed:
                    pass
            time.sleep(reopen)

    def follow_logs(
        self, job_id: JobId, *, after: Optional[str] = None, rank: Optional[int] = None
    ) -> Iterator[JobLog]:
        """Log lines of the job, past and future ones, until it has ended; of one rank or of all."""
        for entry in self.follow(job_id, after=after, kinds=["log"]):
            if entry["kind"] == "log" and rank in (None, entry["rank"]):
                yield entry

    def watch(self, job_id: JobId) -> Job:
        """Shows the progress of a job until it has ended or is paused: a bar where tqdm is installed, else lines on
        standard error. Returns the job."""
        job = self.get(job_id)
        progress = Progress(job)
        try:
            progress.state(job)
            if job["state"] in (*FINAL_STATES, "paused"):
                return job
            for entry in self.follow(job["id"], kinds=["event", "metric"]):
                if entry["kind"] == "metric":
                    progress.metric(entry)
                elif entry["kind"] == "event" and entry["type"] == "job.state":
                    job = self.get(job["id"])
                    progress.state(job)
                    if job["state"] == "paused":
                        return job
            return self.get(job["id"])
        finally:
            progress.close()

    def samples(self, job_id: JobId) -> List[StepAnswers]:
        """Answers of checkpoints to the prompts of the job's document (`checkpoint.samples`), by step."""
        events = [event for event in self.list_events(job_id, limit=1000) if event["type"] in ANSWERS]
        return [
            {
                "step": data["step"],
                "checkpoint_id": data["checkpoint_id"],
                "answers": data.get("answers", []),
                "error": data.get("message"),
            }
            for data in (event["data"] for event in events)
        ]

    def metrics_frame(self, job_id: JobId, *, max_points: Optional[int] = None) -> Any:
        """The metrics of a job as a DataFrame of pandas, one row per step. A repeated step has its newest values."""
        try:
            pandas: Any = import_module("pandas")
        except ImportError:
            raise ZerofleetError("metrics_frame needs pandas: pip install pandas") from None
        frame = pandas.DataFrame(self.list_metrics(job_id, limit=1000, max_points=max_points))
        if frame.empty:
            return frame
        kept = frame.drop(columns=["kind", "position", "seq"], errors="ignore")
        return kept.drop_duplicates("step", keep="last").set_index("step").sort_index()

    def wait(
        self,
        job_id: JobId,
        *,
        states: Container[JobState] = (),
        timeout: Optional[float] = None,
        on_job: Optional[Callable[[Job], object]] = None,
    ) -> Job:
        """Waits until the job has ended, or is in one of `states`; a state that it leaves at once may be missed.
        The server answers as soon as the state changes. `on_job` is called with each version of the job.
        Raises WaitTimeout after `timeout` seconds; None waits as long as the job takes."""
        deadline = None if timeout is None else time.monotonic() + timeout
        job = self.get(job_id)
        while True:
            if on_job is not None:
                on_job(job)
            if job["state"] in FINAL_STATES or job["state"] in states:
                return job
            seconds = LONG_POLL_SECONDS if deadline is None else deadline - time.monotonic()
            if seconds <= 0:
                raise WaitTimeout(f"{job_id} is {job['state']} after {timeout} seconds")
            # The API counts whole seconds.
            whole = max(1, int(min(seconds, LONG_POLL_SECONDS)))
            job = self.get(job["id"], wait=f"{whole}s", since_version=job["state_version"])

    def _id(self, job_id: JobId) -> JobId:
        """The id of a job that may be named. A name is looked up once, because another job may get it later."""
        return job_id if LOOKS_LIKE_ID.fullmatch(job_id) else find_id("jobs", job_id, self._http.get)
