"""Operations of the API. Generated from openapi.yaml by `npm run generate`."""

from __future__ import annotations

from typing import Dict, Iterator, List, Literal, Optional, Union

from . import schemas
from .streams import ByteStream, EventStream
from .transport import Content, Resource, quoted


class JobsOperations(Resource):
    def list(
        self,
        *,
        after: Optional[schemas.JobId] = None,
        limit: Optional[int] = None,
        name: Optional[schemas.Name] = None,
        id_prefix: Optional[str] = None,
        state: Optional[List[schemas.JobState]] = None,
        pool: Optional[schemas.PoolName] = None,
        label: Optional[List[str]] = None,
        created_after: Optional[str] = None,
        created_before: Optional[str] = None,
    ) -> Iterator[schemas.Job]:
        """One page of jobs, newest first; with filters only jobs that match all of them. A request
        examines at most 1,000 jobs: when few of them match, a page has fewer than `limit` jobs, or
        none, and a `next_cursor` to continue."""
        return self._http.pages(
            "/v1/jobs",
            query={
                "after": after,
                "limit": limit,
                "name": name,
                "id_prefix": id_prefix,
                "state": state,
                "pool": pool,
                "label": label,
                "created_after": created_after,
                "created_before": created_before,
            },
        )

    def create(
        self,
        body: schemas.JobSpec,
        *,
        idempotency_key: Optional[str] = None,
    ) -> schemas.Job:
        """Validates the document, fills in every default and queues the job. `spec` in the response
        is the resolved document; the training depends on nothing else. The server sends `201` only
        when the record is durable; neither a crash nor a repeated request can lose or duplicate the
        job. With an `s3://` or `hf://` URI in `data.uri`, `data.tokenizer` or `model.init_from` the
        server responds once it has copied and checked the content, which may take minutes. A client
        that disconnects meanwhile repeats the same request and waits for the same copy. The server
        copies nothing for an invalid document, a dry run or a repeated request. If the job is
        refused after the copy, the copy stays as a dataset or a model, and the next request uses
        it."""
        answer: schemas.Job = self._http.json(
            "POST",
            "/v1/jobs",
            headers={
                "Idempotency-Key": idempotency_key,
            },
            body=body,
        )
        return answer

    def dry_run(
        self,
        body: schemas.JobSpec,
        *,
        idempotency_key: Optional[str] = None,
    ) -> schemas.DryRun:
        """Only validates the document. Nothing is recorded; the response contains the resulting
        job, the memory that it needs, and warnings about the beginning of its data."""
        answer: schemas.DryRun = self._http.json(
            "POST",
            "/v1/jobs",
            headers={
                "Idempotency-Key": idempotency_key,
            },
            query={"dry_run": True},
            body=body,
        )
        return answer

    def get(
        self,
        job_id: schemas.JobId,
        *,
        wait: Optional[str] = None,
        since_version: Optional[int] = None,
        if_none_match: Optional[str] = None,
    ) -> schemas.Job:
        """The current job. With `If-None-Match`, an unchanged job returns `304` without a body.
        With `wait` the server responds once the job's `state_version` differs from `since_version`
        (without it: from the current one), or after `wait` seconds with the job as it is then.
        Progress alone does not end the wait; the stream reports it."""
        answer: schemas.Job = self._http.json(
            "GET",
            f"/v1/jobs/{quoted(job_id)}",
            query={
                "wait": wait,
                "since_version": since_version,
            },
            headers={
                "If-None-Match": if_none_match,
            },
        )
        return answer

    def update(
        self,
        job_id: schemas.JobId,
        body: schemas.JobPatch,
        *,
        idempotency_key: Optional[str] = None,
        if_match: Optional[str] = None,
    ) -> schemas.Job:
        """A JSON merge patch (RFC 7396): absent fields stay, `null` removes a label or a limit. All
        other fields of a job's document determine its arithmetic and cannot change.
        `train.overrides` replaces the document's list, so that the learning rate or the loss scale
        changes at a future step. Entries below the completed steps (`progress.step`) must stay as
        they are, otherwise the request is refused with `override_step_completed`. Running ranks
        stop at their next step boundary, save, and continue with the new document. If they have
        passed a step of the list by then, the change applies from that boundary on. The document's
        list states that step, and the event `overrides.moved` reports it. So the document always
        describes the actual training, and another job with it has the same bits. `labels` may
        change in every state, the other fields until the job has ended. Priority and limits apply
        at once. The range of ranks applies from the next generation of ranks on. A running job
        changes to a number of ranks within it at its next step boundary, to grow once slots are
        free. Its result stays the same, bit for bit. A new `preferred` is the number of ranks that
        the job requests from now on, as with `resize`."""
        answer: schemas.Job = self._http.json(
            "PATCH",
            f"/v1/jobs/{quoted(job_id)}",
            headers={
                "Idempotency-Key": idempotency_key,
                "If-Match": if_match,
            },
            body=body,
        )
        return answer

    def delete(
        self,
        job_id: schemas.JobId,
        *,
        artifacts: Optional[bool] = None,
        idempotency_key: Optional[str] = None,
        if_match: Optional[str] = None,
    ) -> None:
        """Removes the job, its events, metrics, logs and calls permanently; `recover` does not
        restore it. With `artifacts=true` its checkpoints and exports are removed as well; otherwise
        their files stay in the object store, but the API no longer lists them. The request is
        refused while another job or an export reads a checkpoint of the job (`checkpoint_held`),
        and with `artifacts=true` if it has a pinned checkpoint (`checkpoint_pinned`). A deletion
        that has begun is completed even if the server is killed."""
        return self._http.empty(
            "DELETE",
            f"/v1/jobs/{quoted(job_id)}",
            query={
                "artifacts": artifacts,
            },
            headers={
                "Idempotency-Key": idempotency_key,
                "If-Match": if_match,
            },
        )

    def cancel(
        self,
        job_id: schemas.JobId,
        *,
        idempotency_key: Optional[str] = None,
        if_match: Optional[str] = None,
    ) -> schemas.Job:
        """Requests that the job stops permanently. A queued or paused job is cancelled at once; a
        running job stops at its next step boundary. Its committed checkpoints stay. A repeated
        request changes nothing."""
        answer: schemas.Job = self._http.json(
            "POST",
            f"/v1/jobs/{quoted(job_id)}/cancel",
            headers={
                "Idempotency-Key": idempotency_key,
                "If-Match": if_match,
            },
        )
        return answer

    def pause(
        self,
        job_id: schemas.JobId,
        *,
        idempotency_key: Optional[str] = None,
        if_match: Optional[str] = None,
    ) -> schemas.Job:
        """Requests that the job saves a checkpoint and releases its ranks. All ranks stop at the
        same step boundary. A queued job is paused at once. A repeated request changes nothing."""
        answer: schemas.Job = self._http.json(
            "POST",
            f"/v1/jobs/{quoted(job_id)}/pause",
            headers={
                "Idempotency-Key": idempotency_key,
                "If-Match": if_match,
            },
        )
        return answer

    def resume(
        self,
        job_id: schemas.JobId,
        body: Optional[schemas.ResumeRequest] = None,
        *,
        idempotency_key: Optional[str] = None,
        if_match: Optional[str] = None,
    ) -> schemas.Job:
        """Queues a paused job again from its newest committed checkpoint. `ranks` may differ from
        the previous number, within the job's `resources.ranks`: the result is the same, bit for
        bit."""
        answer: schemas.Job = self._http.json(
            "POST",
            f"/v1/jobs/{quoted(job_id)}/resume",
            headers={
                "Idempotency-Key": idempotency_key,
                "If-Match": if_match,
            },
            body=body,
        )
        return answer

    def checkpoint(
        self,
        job_id: schemas.JobId,
        *,
        idempotency_key: Optional[str] = None,
        if_match: Optional[str] = None,
    ) -> schemas.Job:
        """Requests a checkpoint at the next step boundary of the running job. The result of the
        training stays the same, bit for bit. The event `checkpoint.committed` reports the
        checkpoint; requests made before it share this checkpoint."""
        answer: schemas.Job = self._http.json(
            "POST",
            f"/v1/jobs/{quoted(job_id)}/checkpoint",
            headers={
                "Idempotency-Key": idempotency_key,
                "If-Match": if_match,
            },
        )
        return answer

    def fork(
        self,
        job_id: schemas.JobId,
        body: Optional[schemas.ForkRequest] = None,
        *,
        idempotency_key: Optional[str] = None,
    ) -> schemas.Job:
        """Creates a job from this job's document, changed by `overrides` (a JSON merge patch: null
        removes a field). The new job continues from the checkpoint: step, optimizer, loss scaler,
        order of the data. Without overrides that affect the training it ends with the same bits."""
        answer: schemas.Job = self._http.json(
            "POST",
            f"/v1/jobs/{quoted(job_id)}/fork",
            headers={
                "Idempotency-Key": idempotency_key,
            },
            body=body,
        )
        return answer

    def resize(
        self,
        job_id: schemas.JobId,
        body: schemas.ResizeRequest,
        *,
        idempotency_key: Optional[str] = None,
        if_match: Optional[str] = None,
    ) -> schemas.Job:
        """A running job saves at its next step boundary and continues on `ranks` ranks; to grow it
        waits until the pool has free slots. A waiting or paused job starts with that number. The
        result stays the same, bit for bit."""
        answer: schemas.Job = self._http.json(
            "POST",
            f"/v1/jobs/{quoted(job_id)}/resize",
            headers={
                "Idempotency-Key": idempotency_key,
                "If-Match": if_match,
            },
            body=body,
        )
        return answer

    def retry(
        self,
        job_id: schemas.JobId,
        *,
        idempotency_key: Optional[str] = None,
        if_match: Optional[str] = None,
    ) -> schemas.Job:
        """Queues the next attempt of a failed job from its newest checkpoint, with a fresh error
        budget and fresh limits. The job's inputs must still exist (`dataset_not_found`,
        `model_not_found`, `checkpoint_not_found`)."""
        answer: schemas.Job = self._http.json(
            "POST",
            f"/v1/jobs/{quoted(job_id)}/retry",
            headers={
                "Idempotency-Key": idempotency_key,
                "If-Match": if_match,
            },
        )
        return answer

    def list_attempts(
        self,
        job_id: schemas.JobId,
        *,
        after: Optional[str] = None,
        limit: Optional[int] = None,
    ) -> Iterator[schemas.Attempt]:
        """One item for each time that a worker claimed the job: its workers, ranks over time,
        outcome and root cause. The newest 1,000 items are kept; after a loss of Redis the list
        starts empty."""
        return self._http.pages(
            f"/v1/jobs/{quoted(job_id)}/attempts",
            query={
                "after": after,
                "limit": limit,
            },
        )

    def get_document(
        self,
        job_id: schemas.JobId,
    ) -> schemas.GivenDocument:
        """The document as the request gave it, before defaults were filled in and references were
        resolved; `spec` of the job is what came of it. For a fork it is the document of the source,
        changed by `overrides`. Changes of the job leave it as it is. It is stored with the job and
        survives a loss of Redis."""
        answer: schemas.GivenDocument = self._http.json(
            "GET",
            f"/v1/jobs/{quoted(job_id)}/document",
        )
        return answer

    def list_events(
        self,
        job_id: schemas.JobId,
        *,
        after: Optional[schemas.StreamPosition] = None,
        limit: Optional[int] = None,
    ) -> Iterator[schemas.JobEvent]:
        """Events, metrics and log lines share one increasing sequence `seq`, so `seq` has gaps
        within each kind. `after` takes the `position` of the last received item, also to poll for
        new items."""
        return self._http.pages(
            f"/v1/jobs/{quoted(job_id)}/events",
            query={
                "after": after,
                "limit": limit,
            },
        )

    def list_metrics(
        self,
        job_id: schemas.JobId,
        *,
        after: Optional[schemas.StreamPosition] = None,
        limit: Optional[int] = None,
        from_step: Optional[int] = None,
        to_step: Optional[int] = None,
        max_points: Optional[int] = None,
        names: Optional[List[schemas.MetricName]] = None,
    ) -> Iterator[schemas.JobMetric]:
        """One item for each optimizer step. After a recovery a step may appear again, with the
        epoch of the attempt that repeated it. With `max_points` the response is one page of at most
        that many items, selected for a plot. It has the first and the last item of the range. For
        each interval of steps between them it has the items with the minimum and the maximum of
        every metric in `names`. Every item is a measurement, never an average. Of a step that
        appears more than once the newest item is used, and of equal values the newest one is
        selected. So the same items always give the same page. `after` and `limit` are ignored then."""
        return self._http.pages(
            f"/v1/jobs/{quoted(job_id)}/metrics",
            query={
                "after": after,
                "limit": limit,
                "from_step": from_step,
                "to_step": to_step,
                "max_points": max_points,
                "names": names,
            },
        )

    def metrics_file(
        self,
        job_id: schemas.JobId,
        *,
        format: Literal["jsonl", "csv", "tensorboard"],
        after: Optional[schemas.StreamPosition] = None,
        limit: Optional[int] = None,
        from_step: Optional[int] = None,
        to_step: Optional[int] = None,
        max_points: Optional[int] = None,
        names: Optional[List[schemas.MetricName]] = None,
    ) -> ByteStream:
        """`json`: a page. The other formats are files of all items after `after`, or the first
        `limit` of them. `jsonl`: each item as one line of JSON. `csv`: a table after RFC 4180,
        whose first line has `seq`, `position`, `at`, `step`, `epoch` and the names of all values of
        the items. A value that an item lacks is an empty field, and `null` is `NaN`. `tensorboard`:
        an event file of TensorBoard with a scalar for each value, as a 32-bit number, `NaN` for
        `null`. A step that appears again replaces the values of this step and of later ones. Names
        of values: `loss`, `aux_loss`, `grad_norm`, `lr`, `loss_scale`, `skipped_steps`, `tokens`,
        `tokens_per_second`, `world_size`, `memory_bytes`. Also `preference/`, `reinforcement/` and
        `seconds/` with a field of these objects, and `system/` with a field of this object, `/` and
        the rank. `trust_ratios/` is followed by the index of the group, `/`, and `min`, `median` or
        `max`. `eval_loss` may be followed by `/` and the name of a dataset."""
        return self._http.open(
            "GET",
            f"/v1/jobs/{quoted(job_id)}/metrics",
            query={
                "format": format,
                "after": after,
                "limit": limit,
                "from_step": from_step,
                "to_step": to_step,
                "max_points": max_points,
                "names": names,
            },
        )

    def list_logs(
        self,
        job_id: schemas.JobId,
        *,
        rank: Optional[int] = None,
        after: Optional[schemas.StreamPosition] = None,
        limit: Optional[int] = None,
    ) -> Iterator[schemas.JobLog]:
        """Lines that the rank processes wrote to standard output and standard error, on all
        machines, and messages of their workers about them: starts, ends, retries. About the newest
        10,000 lines of a job are kept, also after it has ended; a line is truncated at 2,000
        characters. A rank may write 20 lines per second with bursts of 200; an entry states how
        many further lines were dropped. Escape sequences are removed, other control characters are
        replaced by U+FFFD, and apparent credentials by `[redacted]`. Lines share the sequence `seq`
        with events and metrics. `after` takes the `position` of the last received item, also to
        poll for new items."""
        return self._http.pages(
            f"/v1/jobs/{quoted(job_id)}/logs",
            query={
                "rank": rank,
                "after": after,
                "limit": limit,
            },
        )

    def stream(
        self,
        job_id: schemas.JobId,
        *,
        kinds: Optional[List[Literal["event", "metric", "log"]]] = None,
        last_event_id: Optional[schemas.StreamPosition] = None,
    ) -> EventStream:
        """Server-sent events. Each message has the item's `position` as its `id`, `event` =
        `event`, `metric` or `log`, and the item as JSON in `data`. While nothing happens, the
        server sends a comment line as a heartbeat. After the last item of a job in a final state
        the server sends a message `event: end` with `{"state": …}` and closes the stream. The
        client should not reconnect after it. A client that sends the last `id` as `Last-Event-ID`
        receives all items after it, without gaps and repetitions; the `position` of the last item
        of a list works as well. Without the header the stream begins with the job's first item.
        When Redis has lost the job's items since, the server first sends a message `event: reset`
        with an empty `id`. All items that still exist follow, and `seq` counts from 1 again."""
        return self._http.events(
            "GET",
            f"/v1/jobs/{quoted(job_id)}/stream",
            query={
                "kinds": kinds,
            },
            headers={
                "Last-Event-ID": last_event_id,
            },
        )

    def list_checkpoints(
        self,
        job_id: schemas.JobId,
        *,
        after: Optional[schemas.CheckpointCursor] = None,
        limit: Optional[int] = None,
    ) -> Iterator[schemas.Checkpoint]:
        """One page of the job's committed checkpoints that the retention rule has not removed,
        highest step first."""
        return self._http.pages(
            f"/v1/jobs/{quoted(job_id)}/checkpoints",
            query={
                "after": after,
                "limit": limit,
            },
        )

    def list_shares(
        self,
        job_id: schemas.JobId,
    ) -> List[schemas.Share]:
        """All shares of the job that have not ended, newest first, without their tokens."""
        answer: List[schemas.Share] = self._http.json(
            "GET",
            f"/v1/jobs/{quoted(job_id)}/shares",
        )["data"]
        return answer

    def create_share(
        self,
        job_id: schemas.JobId,
        body: Optional[schemas.ShareRequest] = None,
        *,
        idempotency_key: Optional[str] = None,
    ) -> schemas.NewShare:
        """Returns a token that reads this job until it expires or is revoked: the job with its
        metrics, events, log lines, checkpoints and attempts, and nothing else (`outside_share`). It
        is a bearer token. The address `/#/shared/TOKEN` of this server shows the job in a browser.
        A job may have 50 shares, which end with it (`too_many_shares`)."""
        answer: schemas.NewShare = self._http.json(
            "POST",
            f"/v1/jobs/{quoted(job_id)}/shares",
            headers={
                "Idempotency-Key": idempotency_key,
            },
            body=body,
        )
        return answer

    def revoke_share(
        self,
        job_id: schemas.JobId,
        share_id: schemas.ShareId,
        *,
        idempotency_key: Optional[str] = None,
    ) -> None:
        """The token is refused from now on. Sessions and streams that use it end within a second."""
        return self._http.empty(
            "DELETE",
            f"/v1/jobs/{quoted(job_id)}/shares/{quoted(share_id)}",
            headers={
                "Idempotency-Key": idempotency_key,
            },
        )

    def list_calls(
        self,
        job_id: schemas.JobId,
        *,
        after: Optional[str] = None,
        limit: Optional[int] = None,
    ) -> Iterator[schemas.CallSummary]:
        """One page of the log of calls. The log is kept in the object store as long as the job, and
        survives a loss of Redis."""
        return self._http.pages(
            f"/v1/jobs/{quoted(job_id)}/calls",
            query={
                "after": after,
                "limit": limit,
            },
        )

    def get_call(
        self,
        job_id: schemas.JobId,
        number: schemas.CallNumber,
    ) -> schemas.StoredCall:
        """The call as it is stored, with the values of absent fields. Another session of the same
        document gives the same result for it, after the same calls. A `load_state` has the `prefix`
        of its checkpoint, which `putCall` refuses."""
        answer: schemas.StoredCall = self._http.json(
            "GET",
            f"/v1/jobs/{quoted(job_id)}/calls/{quoted(number)}",
        )
        return answer

    def put_call(
        self,
        job_id: schemas.JobId,
        number: schemas.CallNumber,
        body: schemas.Call,
    ) -> schemas.CallReceipt:
        """Stores the call under the next number and acknowledges it; `getCallResult` returns its
        result. The same call under the same number changes nothing, so a client may repeat a
        request whose response it has not received. Another call under a number that exists is
        refused (`call_conflict`), a number after the next one as well (`call_out_of_order`). A
        session has at most 64 calls without a result (`too_many_calls`), and nothing follows a
        `finish` (`session_finished`). A body has at most 16 MiB. A session that was paused because
        it was idle is resumed."""
        answer: schemas.CallReceipt = self._http.json(
            "PUT",
            f"/v1/jobs/{quoted(job_id)}/calls/{quoted(number)}",
            body=body,
        )
        return answer

    def get_rollout(
        self,
        job_id: schemas.JobId,
        *,
        step: Optional[int] = None,
    ) -> schemas.Rollout:
        """The samples that a step of a job with the objective `grpo` uses, with their rewards;
        those of the newest step whose rewards are known, unless `step` names one."""
        answer: schemas.Rollout = self._http.json(
            "GET",
            f"/v1/jobs/{quoted(job_id)}/rollout",
            query={
                "step": step,
            },
        )
        return answer

    def get_call_result(
        self,
        job_id: schemas.JobId,
        number: schemas.CallNumber,
        *,
        wait_seconds: Optional[int] = None,
    ) -> schemas.CallAnswer:
        """With `wait_seconds` the response comes as soon as the result exists, or after this time
        without it. A call that could not be done has an `error` as its result."""
        answer: schemas.CallAnswer = self._http.json(
            "GET",
            f"/v1/jobs/{quoted(job_id)}/calls/{quoted(number)}/result",
            query={
                "wait_seconds": wait_seconds,
            },
        )
        return answer



class ServiceOperations(Resource):
    def estimate_memory(
        self,
        body: schemas.EstimateRequest,
    ) -> schemas.Estimate:
        """Bytes that one rank of a job allocates, by part, for each number of ranks that the job
        may use. The document is validated as in `createJob`, but its dataset, its checkpoint and
        the model of its tokenizer need not exist; the model that it begins with must exist. Nothing
        is recorded or allocated. The numbers apply to a worker that computes on a CPU, from its
        first step on. They exclude the program itself, the data, and the copies of the state that
        exist while a checkpoint is saved (up to twice `master` + `moments`)."""
        answer: schemas.Estimate = self._http.json(
            "POST",
            "/v1/estimate",
            body=body,
        )
        return answer

    def preview_data(
        self,
        body: schemas.DataPreviewRequest,
    ) -> schemas.DataPreview:
        """Reads the beginning of the dataset as the job would. Returns the texts after the chat
        template, their learned parts, and their number of tokens by the job's tokenizer. The
        document is validated as in `estimateMemory`, but its dataset and its tokenizer must exist.
        Nothing is recorded."""
        answer: schemas.DataPreview = self._http.json(
            "POST",
            "/v1/data-preview",
            body=body,
        )
        return answer

    def run_grader(
        self,
        body: schemas.GradeRequest,
    ) -> schemas.Grade:
        """Runs a grader on one answer, as a job with the objective `grpo` does. A grader that fails
        is reported in `errors`, with a reward of 0. Nothing is recorded."""
        answer: schemas.Grade = self._http.json(
            "POST",
            "/v1/graders/run",
            body=body,
        )
        return answer

    def validate_grader(
        self,
        body: schemas.GraderValidateRequest,
    ) -> schemas.CheckedGrader:
        """Checks the fields, templates and formula of a grader. Python compiles the source of a
        `python` grader and imports its modules, but does not run the source. Nothing is recorded."""
        answer: schemas.CheckedGrader = self._http.json(
            "POST",
            "/v1/graders/validate",
            body=body,
        )
        return answer

    def list_pools(
        self,
    ) -> List[schemas.Pool]:
        """Pools that have a live worker or a job, by name."""
        answer: List[schemas.Pool] = self._http.json(
            "GET",
            "/v1/pools",
        )["data"]
        return answer

    def list_workers(
        self,
        *,
        pool: Optional[schemas.PoolName] = None,
    ) -> List[schemas.Worker]:
        """Live workers, by pool and id."""
        answer: List[schemas.Worker] = self._http.json(
            "GET",
            "/v1/workers",
            query={
                "pool": pool,
            },
        )["data"]
        return answer

    def create_sign_in_code(
        self,
    ) -> schemas.SignInCode:
        """Returns a code that signs one browser in as the calling key, once and within two minutes.
        The address `/#/sign-in/CODE` of this server does so; a fragment is never sent to a server.
        Only a request with an `Authorization` header can create a code: a browser session cannot
        create further ones."""
        answer: schemas.SignInCode = self._http.json(
            "POST",
            "/v1/sign-in-codes",
        )
        return answer

    def create_session(
        self,
        body: schemas.SignIn,
    ) -> schemas.Session:
        """Exchanges a sign-in code, an API key or the token of a share for a session, whose token
        is in the cookie `zf_session` only (`HttpOnly`, `SameSite=Strict`, and `Secure` over HTTPS).
        A request with that cookie and without an `Authorization` header has the rights of the key
        or share. A session ends after seven days without a request, with its key or share, or by
        signing out; an answer may set the cookie again to prolong it. A request from another site
        is refused (`csrf_rejected`)."""
        answer: schemas.Session = self._http.json(
            "POST",
            "/v1/sessions",
            body=body,
        )
        return answer

    def end_sessions(
        self,
    ) -> None:
        """Ends all sessions of the calling key, and its sign-in codes. The key itself remains
        valid."""
        return self._http.empty(
            "DELETE",
            "/v1/sessions",
        )

    def end_session(
        self,
    ) -> None:
        """Ends the session of this request. A request that an API key authenticates has none, and
        changes nothing."""
        return self._http.empty(
            "DELETE",
            "/v1/sessions/current",
        )

    def list_users(
        self,
        *,
        project: Optional[schemas.ProjectName] = None,
    ) -> List[schemas.SignedInUser]:
        """The users of the project whom the OpenID provider has signed in, the newest sign-in
        first, until the end of their sign-in. `project` selects another project, which requires the
        scope `operator`."""
        answer: List[schemas.SignedInUser] = self._http.json(
            "GET",
            "/v1/users",
            query={
                "project": project,
            },
        )["data"]
        return answer

    def get_sign_in_methods(
        self,
    ) -> schemas.SignInMethods:
        """The OpenID provider of this server, if it has one. A key always works."""
        answer: schemas.SignInMethods = self._http.json(
            "GET",
            "/v1/sign-in-methods",
        )
        return answer

    def list_audit_log(
        self,
        *,
        after: Optional[schemas.AuditEntryId] = None,
        limit: Optional[int] = None,
        principal_id: Optional[schemas.PrincipalId] = None,
        operation: Optional[schemas.OperationName] = None,
        resource: Optional[str] = None,
        since: Optional[schemas.Time] = None,
        until: Optional[schemas.Time] = None,
    ) -> Iterator[schemas.AuditEntry]:
        """Each entry is one request by an API key of the project that changed something or tried
        to: the operation, its resource, the key and the outcome. The server writes an entry before
        it responds, and keeps it for 400 days; it keeps at most about 100,000 entries. Entries
        contain no bodies and no headers. With filters a page may have fewer entries than `limit`
        although another page follows."""
        return self._http.pages(
            "/v1/audit-log",
            query={
                "after": after,
                "limit": limit,
                "principal_id": principal_id,
                "operation": operation,
                "resource": resource,
                "since": since,
                "until": until,
            },
        )

    def get_me(
        self,
    ) -> schemas.Me:
        """The API key of the request with its scopes and rate limit, and its project with its quota
        and current usage; or the share of the request."""
        answer: schemas.Me = self._http.json(
            "GET",
            "/v1/me",
        )
        return answer

    def get_hub_token(
        self,
    ) -> schemas.HubToken:
        """The time at which the token was set. No request returns the token."""
        answer: schemas.HubToken = self._http.json(
            "GET",
            "/v1/hub-token",
        )
        return answer

    def put_hub_token(
        self,
        body: schemas.HubTokenRequest,
        *,
        idempotency_key: Optional[str] = None,
    ) -> schemas.HubToken:
        """The server sends the token to the Hub with every request for the project, so that private
        and gated repositories can be copied. A token with the right to read suffices. It replaces
        the previous one."""
        answer: schemas.HubToken = self._http.json(
            "PUT",
            "/v1/hub-token",
            headers={
                "Idempotency-Key": idempotency_key,
            },
            body=body,
        )
        return answer

    def delete_hub_token(
        self,
        *,
        idempotency_key: Optional[str] = None,
    ) -> None:
        """Later requests read public repositories only. Copies stay. Deleting an absent token
        succeeds."""
        return self._http.empty(
            "DELETE",
            "/v1/hub-token",
            headers={
                "Idempotency-Key": idempotency_key,
            },
        )

    def get_usage(
        self,
        *,
        from_: Optional[str] = None,
        to: Optional[str] = None,
    ) -> schemas.ProjectUsage:
        """Time, ranks, cost and tokens by day (UTC), for at most 366 days; and the current jobs by
        state, ranks, storage and quota of the project. Days are kept for 400 days."""
        answer: schemas.ProjectUsage = self._http.json(
            "GET",
            "/v1/usage",
            query={
                "from": from_,
                "to": to,
            },
        )
        return answer

    def get_health(
        self,
    ) -> schemas.Health:
        """Returns 200 as long as the process serves requests, 503 once it is shutting down; it
        depends on no other service. A load balancer should send requests only while this operation
        returns `200`."""
        answer: schemas.Health = self._http.json(
            "GET",
            "/healthz",
        )
        return answer

    def get_readiness(
        self,
    ) -> schemas.Readiness:
        """Checks Redis and the object store, for people and monitoring."""
        answer: schemas.Readiness = self._http.json(
            "GET",
            "/readyz",
        )
        return answer

    def get_metrics(
        self,
    ) -> str:
        """Requests and streams of this process, and the pools, which are the same in all processes.
        Requires a key with the scope `operator`, because pools serve all projects; Prometheus sends
        it with `authorization: {credentials: …}` in its scrape configuration."""
        return self._http.text(
            "GET",
            "/metrics",
        )

    def get_openapi(
        self,
    ) -> str:
        """The contract of the server."""
        return self._http.text(
            "GET",
            "/openapi.yaml",
        )



class SweepsOperations(Resource):
    def list(
        self,
        *,
        after: Optional[schemas.SweepId] = None,
        limit: Optional[int] = None,
        name: Optional[schemas.Name] = None,
        id_prefix: Optional[str] = None,
    ) -> Iterator[schemas.Sweep]:
        """One page of sweeps, newest first."""
        return self._http.pages(
            "/v1/sweeps",
            query={
                "after": after,
                "limit": limit,
                "name": name,
                "id_prefix": id_prefix,
            },
        )

    def create(
        self,
        body: schemas.SweepSpec,
        *,
        idempotency_key: Optional[str] = None,
    ) -> schemas.Sweep:
        """Trains a job for each combination of values of some fields and compares the jobs by their
        evaluation. The server checks the documents of all runs first, and creates nothing if it
        refuses one of them. The runs are ordinary jobs. The server begins them as others end, also
        while no client is connected. With `successive_halving` it pauses each job at a rung, and
        resumes or cancels it once all runs have reached the rung. As a pause does not change a
        training, a run has the same `state_digest` as its job by itself."""
        answer: schemas.Sweep = self._http.json(
            "POST",
            "/v1/sweeps",
            headers={
                "Idempotency-Key": idempotency_key,
            },
            body=body,
        )
        return answer

    def dry_run(
        self,
        body: schemas.SweepSpec,
        *,
        idempotency_key: Optional[str] = None,
    ) -> schemas.SweepPlan:
        """Only checks the runs. Nothing is recorded; the response contains the runs."""
        answer: schemas.SweepPlan = self._http.json(
            "POST",
            "/v1/sweeps",
            headers={
                "Idempotency-Key": idempotency_key,
            },
            query={"dry_run": True},
            body=body,
        )
        return answer

    def get(
        self,
        sweep_id: schemas.SweepId,
    ) -> schemas.Sweep:
        """The sweep with its runs."""
        answer: schemas.Sweep = self._http.json(
            "GET",
            f"/v1/sweeps/{quoted(sweep_id)}",
        )
        return answer

    def delete(
        self,
        sweep_id: schemas.SweepId,
        *,
        idempotency_key: Optional[str] = None,
    ) -> None:
        """Deletes the record of a sweep that has ended. Its jobs stay."""
        return self._http.empty(
            "DELETE",
            f"/v1/sweeps/{quoted(sweep_id)}",
            headers={
                "Idempotency-Key": idempotency_key,
            },
        )

    def cancel(
        self,
        sweep_id: schemas.SweepId,
        *,
        idempotency_key: Optional[str] = None,
    ) -> schemas.Sweep:
        """Ends the sweep and cancels its unfinished jobs. Runs that have ended stay. A repeated
        request changes nothing."""
        answer: schemas.Sweep = self._http.json(
            "POST",
            f"/v1/sweeps/{quoted(sweep_id)}/cancel",
            headers={
                "Idempotency-Key": idempotency_key,
            },
        )
        return answer

    def pause(
        self,
        sweep_id: schemas.SweepId,
        *,
        idempotency_key: Optional[str] = None,
    ) -> schemas.Sweep:
        """Begins no more runs and pauses the jobs of those that train. A repeated request changes
        nothing."""
        answer: schemas.Sweep = self._http.json(
            "POST",
            f"/v1/sweeps/{quoted(sweep_id)}/pause",
            headers={
                "Idempotency-Key": idempotency_key,
            },
        )
        return answer

    def resume(
        self,
        sweep_id: schemas.SweepId,
        *,
        idempotency_key: Optional[str] = None,
    ) -> schemas.Sweep:
        """Resumes a paused sweep and its jobs. A repeated request changes nothing."""
        answer: schemas.Sweep = self._http.json(
            "POST",
            f"/v1/sweeps/{quoted(sweep_id)}/resume",
            headers={
                "Idempotency-Key": idempotency_key,
            },
        )
        return answer



class CheckpointsOperations(Resource):
    def list(
        self,
        *,
        after: Optional[schemas.CheckpointId] = None,
        limit: Optional[int] = None,
        id_prefix: Optional[str] = None,
    ) -> Iterator[schemas.Checkpoint]:
        """One page of the committed checkpoints of the project's jobs that have not been removed,
        newest first."""
        return self._http.pages(
            "/v1/checkpoints",
            query={
                "after": after,
                "limit": limit,
                "id_prefix": id_prefix,
            },
        )

    def get(
        self,
        checkpoint_id: schemas.CheckpointId,
    ) -> schemas.Checkpoint:
        """A committed checkpoint that has not been removed."""
        answer: schemas.Checkpoint = self._http.json(
            "GET",
            f"/v1/checkpoints/{quoted(checkpoint_id)}",
        )
        return answer

    def update(
        self,
        checkpoint_id: schemas.CheckpointId,
        body: schemas.CheckpointPatch,
        *,
        idempotency_key: Optional[str] = None,
    ) -> schemas.Checkpoint:
        """The retention rule does not remove a pinned checkpoint, and it cannot be deleted."""
        answer: schemas.Checkpoint = self._http.json(
            "PATCH",
            f"/v1/checkpoints/{quoted(checkpoint_id)}",
            headers={
                "Idempotency-Key": idempotency_key,
            },
            body=body,
        )
        return answer

    def delete(
        self,
        checkpoint_id: schemas.CheckpointId,
        *,
        idempotency_key: Optional[str] = None,
    ) -> None:
        """Deletes the checkpoint's record and its objects. Deletion of a pinned checkpoint is
        refused, and so is deletion of the newest checkpoint of an unfinished job, because the job
        would resume from it. A job that begins with the deleted checkpoint and has not saved one of
        its own fails."""
        return self._http.empty(
            "DELETE",
            f"/v1/checkpoints/{quoted(checkpoint_id)}",
            headers={
                "Idempotency-Key": idempotency_key,
            },
        )

    def verify(
        self,
        checkpoint_id: schemas.CheckpointId,
    ) -> schemas.CheckpointVerdict:
        """Makes the same checks as loading the checkpoint, without a job: the manifest, and the
        lengths, SHA-256 and CRC-32C of every shard. It takes as long as reading the checkpoint."""
        answer: schemas.CheckpointVerdict = self._http.json(
            "POST",
            f"/v1/checkpoints/{quoted(checkpoint_id)}/verify",
        )
        return answer

    def sample(
        self,
        checkpoint_id: schemas.CheckpointId,
        body: schemas.SampleRequest,
    ) -> schemas.Sample:
        """A worker of the job's pool samples tokens to continue a text or answer a chat, also while
        the job is running. It loads the model at the first request and unloads it when it was not
        used for some minutes; if loading takes long, the answer is `model_loading` with
        `Retry-After`. The same request returns the same text on the same kind of processor,
        whatever else the worker does. The prompt is encoded with the job's tokenizer; bytes that
        are not UTF-8 appear as U+FFFD. The job's chat template converts messages to a prompt, and
        the text ends where the template ends an answer."""
        answer: schemas.Sample = self._http.json(
            "POST",
            f"/v1/checkpoints/{quoted(checkpoint_id)}/sample",
            body=body,
        )
        return answer

    def stream_sample(
        self,
        checkpoint_id: schemas.CheckpointId,
        body: schemas.SampleRequest,
    ) -> EventStream:
        """A worker of the job's pool samples tokens to continue a text or answer a chat, also while
        the job is running. It loads the model at the first request and unloads it when it was not
        used for some minutes; if loading takes long, the answer is `model_loading` with
        `Retry-After`. The same request returns the same text on the same kind of processor,
        whatever else the worker does. The prompt is encoded with the job's tokenizer; bytes that
        are not UTF-8 appear as U+FFFD. The job's chat template converts messages to a prompt, and
        the text ends where the template ends an answer."""
        return self._http.events(
            "POST",
            f"/v1/checkpoints/{quoted(checkpoint_id)}/sample",
            body={**body, "stream": True},
        )

    def list_tensors(
        self,
        checkpoint_id: schemas.CheckpointId,
        *,
        after: Optional[schemas.TensorName] = None,
        limit: Optional[int] = None,
    ) -> Iterator[schemas.CheckpointTensor]:
        """One page of the parameters, in the order of the model, with the fp32 states that the
        checkpoint has of each one."""
        return self._http.pages(
            f"/v1/checkpoints/{quoted(checkpoint_id)}/tensors",
            query={
                "after": after,
                "limit": limit,
            },
        )

    def get_tensor(
        self,
        checkpoint_id: schemas.CheckpointId,
        name: schemas.TensorName,
        *,
        state: Optional[schemas.TensorState] = None,
    ) -> ByteStream:
        """The whole tensor in fp32, assembled from the shards of all ranks, as a safetensors file
        with one tensor of the parameter's name and shape. Each byte is verified. Like a download,
        the request keeps the checkpoint from the retention rule for an hour. A project can read
        four tensors at a time (`rate_limited`)."""
        return self._http.open(
            "GET",
            f"/v1/checkpoints/{quoted(checkpoint_id)}/tensors/{quoted(name)}",
            query={
                "state": state,
            },
        )

    def put_tensor(
        self,
        checkpoint_id: schemas.CheckpointId,
        name: schemas.TensorName,
        content: Content,
        *,
        state: Optional[schemas.TensorState] = None,
        content_type: str = "application/octet-stream",
    ) -> schemas.TensorEdit:
        """Makes a new checkpoint of the same step in which this state of the parameter has the
        values of the body. The body is a safetensors file as `GET` answers, with one fp32 tensor of
        the same name and shape. The old checkpoint stays as it is; `made_from` of the new one names
        it. The checkpoint must be the newest of a job that is paused or has ended. The new one
        takes its place: a resumed or retried job continues from it, and a fork begins with it. The
        values are checked while they arrive. Then a worker of the job's pool writes the checkpoint
        in the background: poll `GET /v1/checkpoints/{checkpoint_id}/edits/{edit_id}`. A repeated
        request with the same values changes nothing while the change is in progress or complete,
        and retries a failed one."""
        answer: schemas.TensorEdit = self._http.json(
            "PUT",
            f"/v1/checkpoints/{quoted(checkpoint_id)}/tensors/{quoted(name)}",
            query={
                "state": state,
            },
            content=content,
            content_type=content_type,
        )
        return answer

    def get_tensor_edit(
        self,
        checkpoint_id: schemas.CheckpointId,
        edit_id: schemas.EditId,
    ) -> schemas.TensorEdit:
        """The change and, once it has succeeded, the new checkpoint. A change is remembered for
        seven days after its end."""
        answer: schemas.TensorEdit = self._http.json(
            "GET",
            f"/v1/checkpoints/{quoted(checkpoint_id)}/edits/{quoted(edit_id)}",
        )
        return answer

    def export(
        self,
        checkpoint_id: schemas.CheckpointId,
        body: schemas.ExportRequest,
        *,
        idempotency_key: Optional[str] = None,
    ) -> schemas.CheckpointExport:
        """A worker of the job's pool writes the files in the background, also while the job is
        running. The same checkpoint gives the same weights. A repeated request changes nothing
        while the export is in progress or complete; it retries a failed export. The export fails if
        the job's retention rule removes the checkpoint meanwhile."""
        answer: schemas.CheckpointExport = self._http.json(
            "POST",
            f"/v1/checkpoints/{quoted(checkpoint_id)}/export",
            headers={
                "Idempotency-Key": idempotency_key,
            },
            body=body,
        )
        return answer

    def list_exports(
        self,
        checkpoint_id: schemas.CheckpointId,
    ) -> List[schemas.CheckpointExport]:
        """Complete exports, exports in progress, and exports that failed recently."""
        answer: List[schemas.CheckpointExport] = self._http.json(
            "GET",
            f"/v1/checkpoints/{quoted(checkpoint_id)}/exports",
        )["data"]
        return answer

    def create_download_urls(
        self,
        checkpoint_id: schemas.CheckpointId,
        body: Optional[schemas.DownloadRequest] = None,
    ) -> schemas.Download:
        """Without `format` the response lists the files of the checkpoint, from which any number of
        ranks can resume. With `format` it lists the files of a complete export, including the one
        at the end of a job. For files in S3 the response has presigned URLs, valid only for these
        objects and until `expires_at` (or until the server's credentials expire, if that is
        earlier). For files in a directory, and with `via: api`, the URLs are paths of this API
        (`GET /v1/checkpoints/{checkpoint_id}/file`) and require the API key. `zerofleet download`
        does all of this. For `expires_seconds` the retention rule of a running job does not remove
        the checkpoint; with paths of this API it also waits for an hour after each file. Pin a
        checkpoint to keep it longer. Deletion of the checkpoint by a user ends the download."""
        answer: schemas.Download = self._http.json(
            "POST",
            f"/v1/checkpoints/{quoted(checkpoint_id)}/download-urls",
            body=body,
        )
        return answer

    def get_file(
        self,
        checkpoint_id: schemas.CheckpointId,
        *,
        name: str,
        format: Optional[Literal["safetensors", "peft", "peft_folded", "gguf", "gguf_lora", "deepspeed_universal"]] = None,
        dtype: Optional[schemas.ExportDtype] = None,
        weights: Optional[schemas.ExportWeights] = None,
        tensorboard: Optional[bool] = None,
        range: Optional[str] = None,
    ) -> ByteStream:
        """The bytes of a file that `download-urls` lists, all of them or one range, so that a
        client can resume an interrupted download."""
        return self._http.open(
            "GET",
            f"/v1/checkpoints/{quoted(checkpoint_id)}/file",
            query={
                "name": name,
                "format": format,
                "dtype": dtype,
                "weights": weights,
                "tensorboard": tensorboard,
            },
            headers={
                "Range": range,
            },
        )

    def get_archive(
        self,
        checkpoint_id: schemas.CheckpointId,
        *,
        format: Optional[Literal["safetensors", "peft", "peft_folded", "gguf", "gguf_lora", "deepspeed_universal"]] = None,
        dtype: Optional[schemas.ExportDtype] = None,
        weights: Optional[schemas.ExportWeights] = None,
        tensorboard: Optional[bool] = None,
    ) -> ByteStream:
        """A tar archive with the files that `download-urls` lists, in a folder that is named like
        the checkpoint. An interrupted download begins again; `download-urls` and `zerofleet
        download` continue."""
        return self._http.open(
            "GET",
            f"/v1/checkpoints/{quoted(checkpoint_id)}/archive",
            query={
                "format": format,
                "dtype": dtype,
                "weights": weights,
                "tensorboard": tensorboard,
            },
        )



class DatasetsOperations(Resource):
    def list(
        self,
        *,
        after: Optional[schemas.DatasetId] = None,
        limit: Optional[int] = None,
        name: Optional[schemas.Name] = None,
        id_prefix: Optional[str] = None,
    ) -> Iterator[schemas.Dataset]:
        """One page of datasets, newest first."""
        return self._http.pages(
            "/v1/datasets",
            query={
                "after": after,
                "limit": limit,
                "name": name,
                "id_prefix": id_prefix,
            },
        )

    def create(
        self,
        content: Optional[Content] = None,
        *,
        name: schemas.Name,
        uri: Optional[schemas.SourceUri] = None,
        format: Optional[schemas.DatasetFormat] = None,
        idempotency_key: Optional[str] = None,
        content_type: str = "text/plain",
    ) -> schemas.Dataset:
        """The request body is the content. The server checks, counts and stores it while it
        arrives, and never holds all of it in memory. An invalid line of `format=jsonl` is refused
        with its number (`dataset_line_invalid`). The dataset exists once the server sends `201`. A
        refused or interrupted upload leaves nothing behind. With `uri` the request has no body: the
        server copies the content from that object and makes the same checks. Later changes of the
        object change neither the dataset nor the result of any job."""
        answer: schemas.Dataset = self._http.json(
            "POST",
            "/v1/datasets",
            query={
                "uri": uri,
                "name": name,
                "format": format,
            },
            headers={
                "Idempotency-Key": idempotency_key,
            },
            content=content,
            content_type=content_type,
        )
        return answer

    def get(
        self,
        dataset_id: schemas.DatasetId,
    ) -> schemas.Dataset:
        """Name, size, digest and counts of the dataset, without its content."""
        answer: schemas.Dataset = self._http.json(
            "GET",
            f"/v1/datasets/{quoted(dataset_id)}",
        )
        return answer

    def update(
        self,
        dataset_id: schemas.DatasetId,
        body: schemas.DatasetPatch,
        *,
        idempotency_key: Optional[str] = None,
        if_match: Optional[str] = None,
    ) -> schemas.Dataset:
        """A JSON merge patch (RFC 7396): absent fields stay. The content and its counts cannot
        change."""
        answer: schemas.Dataset = self._http.json(
            "PATCH",
            f"/v1/datasets/{quoted(dataset_id)}",
            headers={
                "Idempotency-Key": idempotency_key,
                "If-Match": if_match,
            },
            body=body,
        )
        return answer

    def delete(
        self,
        dataset_id: schemas.DatasetId,
        *,
        idempotency_key: Optional[str] = None,
    ) -> None:
        """Deletes the record and the content. The request is refused while an unfinished job is
        trained or evaluated on the dataset."""
        return self._http.empty(
            "DELETE",
            f"/v1/datasets/{quoted(dataset_id)}",
            headers={
                "Idempotency-Key": idempotency_key,
            },
        )

    def get_content(
        self,
        dataset_id: schemas.DatasetId,
        *,
        range: Optional[str] = None,
    ) -> ByteStream:
        """The uploaded bytes of a dataset, all of them or one range, so that a client can resume an
        interrupted download."""
        return self._http.open(
            "GET",
            f"/v1/datasets/{quoted(dataset_id)}/content",
            headers={
                "Range": range,
            },
        )



class UploadsOperations(Resource):
    def create(
        self,
        body: schemas.UploadRequest,
        *,
        idempotency_key: Optional[str] = None,
    ) -> schemas.Upload:
        """Announces a dataset that the client sends in parts of `part_bytes`, in any order and
        concurrently. Received parts stay; after an interruption `GET /v1/uploads/{upload_id}` lists
        the missing parts. An upload that receives nothing for a day is removed. Until it is
        completed, deleted or removed, all of its `bytes` count as storage of the project."""
        answer: schemas.Upload = self._http.json(
            "POST",
            "/v1/uploads",
            headers={
                "Idempotency-Key": idempotency_key,
            },
            body=body,
        )
        return answer

    def get(
        self,
        upload_id: schemas.UploadId,
    ) -> schemas.Upload:
        """The announced fields, and the numbers of the completely received parts."""
        answer: schemas.Upload = self._http.json(
            "GET",
            f"/v1/uploads/{quoted(upload_id)}",
        )
        return answer

    def delete(
        self,
        upload_id: schemas.UploadId,
        *,
        idempotency_key: Optional[str] = None,
    ) -> None:
        """Removes the received parts. The dataset of a completed upload stays."""
        return self._http.empty(
            "DELETE",
            f"/v1/uploads/{quoted(upload_id)}",
            headers={
                "Idempotency-Key": idempotency_key,
            },
        )

    def create_urls(
        self,
        upload_id: schemas.UploadId,
        body: Optional[schemas.UploadUrlsRequest] = None,
    ) -> schemas.UploadUrls:
        """If the server stores objects in S3, the response has presigned URLs, so the content does
        not pass through the API. Each is for a PUT of exactly this part with exactly its size. It
        is valid until `expires_at`, or until the server's credentials expire, if that is earlier.
        Otherwise, and with `via: api`, the URLs are paths of this API and require the API key. Both
        kinds of parts count alike; completion checks all of them."""
        answer: schemas.UploadUrls = self._http.json(
            "POST",
            f"/v1/uploads/{quoted(upload_id)}/part-urls",
            body=body,
        )
        return answer

    def put_part(
        self,
        upload_id: schemas.UploadId,
        part_number: int,
        content: Content,
        *,
        content_type: str = "application/octet-stream",
    ) -> None:
        """The body is the part: `part_bytes` bytes, the last part the remainder. A part that is
        sent again replaces the previous one; an incompletely received part is discarded."""
        return self._http.empty(
            "PUT",
            f"/v1/uploads/{quoted(upload_id)}/parts/{quoted(part_number)}",
            content=content,
            content_type=content_type,
        )

    def complete(
        self,
        upload_id: schemas.UploadId,
        *,
        idempotency_key: Optional[str] = None,
    ) -> schemas.Dataset:
        """Reads all parts, checks them as `POST /v1/datasets` checks a body, compares them with the
        announced `digest`, and creates the dataset. A repeated request, for example after a lost
        response, returns the same dataset. With concurrent requests while parts are replaced, one
        request determines the parts of the dataset, and the digest matches exactly these. After a
        refusal the parts still exist."""
        answer: schemas.Dataset = self._http.json(
            "POST",
            f"/v1/uploads/{quoted(upload_id)}/complete",
            headers={
                "Idempotency-Key": idempotency_key,
            },
        )
        return answer



class ModelsOperations(Resource):
    def list(
        self,
        *,
        after: Optional[schemas.ModelId] = None,
        limit: Optional[int] = None,
        name: Optional[schemas.Name] = None,
        id_prefix: Optional[str] = None,
    ) -> Iterator[schemas.Model]:
        """One page of uploaded models, newest first, with the presets and the supported model
        families."""
        return self._http.pages(
            "/v1/models",
            query={
                "after": after,
                "limit": limit,
                "name": name,
                "id_prefix": id_prefix,
            },
        )

    def create(
        self,
        content: Optional[Content] = None,
        *,
        name: schemas.Name,
        uri: Optional[schemas.SourceUri] = None,
        base: Optional[schemas.ModelId] = None,
        idempotency_key: Optional[str] = None,
        content_type: str = "application/x-tar",
    ) -> schemas.Model:
        """The request body is a tar archive of a model's folder, as `tar -ch -C folder .` writes
        it. It has `config.json`, the weights as `model.safetensors` or as shards, and the files of
        the tokenizer. Shards are named `model-00001-of-00002.safetensors` …, with or without
        `model.safetensors.index.json`. Other files are ignored and listed in the response. The
        server checks everything while it arrives: the archive, every safetensors header, and names,
        shapes and dtypes of the tensors against the parameters that `config.json` requires. The
        model exists once the server sends `201`. A refused or interrupted upload leaves nothing
        behind. With `uri` the request has no body: the server copies the files from that folder of
        a bucket or of the Hugging Face Hub and makes the same checks. A folder that changes while
        it is copied is refused; later changes of the folder change no model. A DeepSpeed universal
        checkpoint must be uploaded as an archive. With `base` the folder is an adapter's, as PEFT's
        `save_pretrained` writes it: `adapter_config.json` and `adapter_model.safetensors`, and the
        tokenizer's files if they differ from the base's. Adapters of LoRA and DoRA are read; what
        changes the computation and has no equivalent in `train.adapter` is refused by name. A job
        begins with the adapter as with a model, and trains it on."""
        answer: schemas.Model = self._http.json(
            "POST",
            "/v1/models",
            query={
                "uri": uri,
                "name": name,
                "base": base,
            },
            headers={
                "Idempotency-Key": idempotency_key,
            },
            content=content,
            content_type=content_type,
        )
        return answer

    def get(
        self,
        model_id: schemas.ModelId,
    ) -> schemas.Model:
        """The model's configuration and its files with sizes and digests, without the weights."""
        answer: schemas.Model = self._http.json(
            "GET",
            f"/v1/models/{quoted(model_id)}",
        )
        return answer

    def update(
        self,
        model_id: schemas.ModelId,
        body: schemas.ModelPatch,
        *,
        idempotency_key: Optional[str] = None,
        if_match: Optional[str] = None,
    ) -> schemas.Model:
        """A JSON merge patch (RFC 7396): absent fields stay. The files and the results of their
        checks cannot change."""
        answer: schemas.Model = self._http.json(
            "PATCH",
            f"/v1/models/{quoted(model_id)}",
            headers={
                "Idempotency-Key": idempotency_key,
                "If-Match": if_match,
            },
            body=body,
        )
        return answer

    def delete(
        self,
        model_id: schemas.ModelId,
        *,
        idempotency_key: Optional[str] = None,
    ) -> None:
        """Deletes the record and the files. The request is refused while an unfinished job begins
        with the model or uses its tokenizer."""
        return self._http.empty(
            "DELETE",
            f"/v1/models/{quoted(model_id)}",
            headers={
                "Idempotency-Key": idempotency_key,
            },
        )

    def sample(
        self,
        model_id: schemas.ModelId,
        body: schemas.SampleRequest,
        *,
        pool: Optional[schemas.PoolName] = None,
    ) -> schemas.Sample:
        """As for a checkpoint, by a worker of the pool `pool`. The model computes in bf16, or in
        fp32 if all of its weights are stored in fp32. It needs a tokenizer, and for messages a chat
        template among its files."""
        answer: schemas.Sample = self._http.json(
            "POST",
            f"/v1/models/{quoted(model_id)}/sample",
            query={
                "pool": pool,
            },
            body=body,
        )
        return answer

    def stream_sample(
        self,
        model_id: schemas.ModelId,
        body: schemas.SampleRequest,
        *,
        pool: Optional[schemas.PoolName] = None,
    ) -> EventStream:
        """As for a checkpoint, by a worker of the pool `pool`. The model computes in bf16, or in
        fp32 if all of its weights are stored in fp32. It needs a tokenizer, and for messages a chat
        template among its files."""
        return self._http.events(
            "POST",
            f"/v1/models/{quoted(model_id)}/sample",
            query={
                "pool": pool,
            },
            body={**body, "stream": True},
        )



class ApiKeysOperations(Resource):
    def list(
        self,
        *,
        project: Optional[schemas.ProjectName] = None,
        after: Optional[schemas.ApiKeyId] = None,
        limit: Optional[int] = None,
        name: Optional[schemas.Name] = None,
        id_prefix: Optional[str] = None,
    ) -> Iterator[schemas.ApiKey]:
        """The keys of the project without their secrets, including expired ones. `project` selects
        another project, which requires the scope `operator`."""
        return self._http.pages(
            "/v1/api-keys",
            query={
                "project": project,
                "after": after,
                "limit": limit,
                "name": name,
                "id_prefix": id_prefix,
            },
        )

    def create(
        self,
        body: schemas.ApiKeyRequest,
        *,
        idempotency_key: Optional[str] = None,
    ) -> schemas.NewApiKey:
        """Creates a key and returns its secret. The secret is not returned again: the server stores
        only its SHA-256. Only a key with the scope `operator` can create keys of other projects and
        keys with the scope `operator`."""
        answer: schemas.NewApiKey = self._http.json(
            "POST",
            "/v1/api-keys",
            headers={
                "Idempotency-Key": idempotency_key,
            },
            body=body,
        )
        return answer

    def get(
        self,
        key_id: schemas.ApiKeyId,
    ) -> schemas.ApiKey:
        """The key without its secret."""
        answer: schemas.ApiKey = self._http.json(
            "GET",
            f"/v1/api-keys/{quoted(key_id)}",
        )
        return answer

    def update(
        self,
        key_id: schemas.ApiKeyId,
        body: schemas.ApiKeyPatch,
        *,
        idempotency_key: Optional[str] = None,
        if_match: Optional[str] = None,
    ) -> schemas.ApiKey:
        """A JSON merge patch (RFC 7396): absent fields stay, `null` removes the expiry or the rate
        limit. The change applies to both secrets of the key, within a second on every server.
        Project and scopes cannot change; create another key instead. A key from a server's
        configuration is changed there (`api_key_builtin`), and only a key with the scope `operator`
        can change another key with that scope."""
        answer: schemas.ApiKey = self._http.json(
            "PATCH",
            f"/v1/api-keys/{quoted(key_id)}",
            headers={
                "Idempotency-Key": idempotency_key,
                "If-Match": if_match,
            },
            body=body,
        )
        return answer

    def revoke(
        self,
        key_id: schemas.ApiKeyId,
        *,
        idempotency_key: Optional[str] = None,
    ) -> None:
        """The server rejects both secrets and all browser sessions of the key from now on, and ends
        its open streams. A key from a server's configuration is created again when the server
        restarts with the same configuration."""
        return self._http.empty(
            "DELETE",
            f"/v1/api-keys/{quoted(key_id)}",
            headers={
                "Idempotency-Key": idempotency_key,
            },
        )

    def rotate(
        self,
        key_id: schemas.ApiKeyId,
        body: Optional[schemas.RotateRequest] = None,
        *,
        idempotency_key: Optional[str] = None,
    ) -> schemas.NewApiKey:
        """Returns the new secret, which is not returned again. The previous secret remains valid
        for `overlap_seconds`, so that clients can be updated one after the other; an older secret
        from an earlier rotation becomes invalid at once. With `overlap_seconds: 0` the browser
        sessions of the key end, too: they may have begun with the previous secret."""
        answer: schemas.NewApiKey = self._http.json(
            "POST",
            f"/v1/api-keys/{quoted(key_id)}/rotate",
            headers={
                "Idempotency-Key": idempotency_key,
            },
            body=body,
        )
        return answer



class PrincipalsOperations(Resource):
    def end_sessions_of(
        self,
        principal_id: schemas.PrincipalId,
        *,
        idempotency_key: Optional[str] = None,
    ) -> None:
        """Ends all browser sessions of another principal of the project, and its sign-in codes; its
        open streams end within a second. A key and a share remain valid, and a user can sign in
        again as long as the OpenID provider allows it. The scope `operator` reaches principals of
        all projects."""
        return self._http.empty(
            "DELETE",
            f"/v1/principals/{quoted(principal_id)}/sessions",
            headers={
                "Idempotency-Key": idempotency_key,
            },
        )



class WebhooksOperations(Resource):
    def list(
        self,
        *,
        after: Optional[schemas.WebhookId] = None,
        limit: Optional[int] = None,
        url: Optional[str] = None,
        id_prefix: Optional[str] = None,
    ) -> Iterator[schemas.Webhook]:
        """One page of webhooks, newest first, without their secrets."""
        return self._http.pages(
            "/v1/webhooks",
            query={
                "after": after,
                "limit": limit,
                "url": url,
                "id_prefix": id_prefix,
            },
        )

    def create(
        self,
        body: schemas.WebhookSpec,
        *,
        idempotency_key: Optional[str] = None,
    ) -> schemas.WebhookWithSecret:
        """From now on the server POSTs job events to the URL, signed as described by [Standard
        Webhooks](https://www.standardwebhooks.com). The response contains the secret, which is not
        returned again. The server sends each event at least once; a receiver detects a repeated
        event by its `webhook-id`, and orders a job's events by their `position`. The server refuses
        a URL whose host is, or resolves to, a private, loopback or link-local address, at the
        latest when it sends a message there."""
        answer: schemas.WebhookWithSecret = self._http.json(
            "POST",
            "/v1/webhooks",
            headers={
                "Idempotency-Key": idempotency_key,
            },
            body=body,
        )
        return answer

    def get(
        self,
        webhook_id: schemas.WebhookId,
    ) -> schemas.Webhook:
        """The webhook without its secrets."""
        answer: schemas.Webhook = self._http.json(
            "GET",
            f"/v1/webhooks/{quoted(webhook_id)}",
        )
        return answer

    def update(
        self,
        webhook_id: schemas.WebhookId,
        body: schemas.WebhookPatch,
        *,
        idempotency_key: Optional[str] = None,
        if_match: Optional[str] = None,
    ) -> schemas.Webhook:
        """A JSON merge patch (RFC 7396): absent fields stay. Pending messages are sent to the new
        `url` as well. With `enabled: false` the server sends nothing: it does not keep events of
        that time, and pending messages fail with `webhook_disabled`; `redeliver` sends those again."""
        answer: schemas.Webhook = self._http.json(
            "PATCH",
            f"/v1/webhooks/{quoted(webhook_id)}",
            headers={
                "Idempotency-Key": idempotency_key,
                "If-Match": if_match,
            },
            body=body,
        )
        return answer

    def delete(
        self,
        webhook_id: schemas.WebhookId,
        *,
        idempotency_key: Optional[str] = None,
    ) -> None:
        """Deletes the webhook and its log of messages. Pending messages are not sent any more."""
        return self._http.empty(
            "DELETE",
            f"/v1/webhooks/{quoted(webhook_id)}",
            headers={
                "Idempotency-Key": idempotency_key,
            },
        )

    def rotate_secret(
        self,
        webhook_id: schemas.WebhookId,
        body: Optional[schemas.RotateSecretRequest] = None,
        *,
        idempotency_key: Optional[str] = None,
    ) -> schemas.WebhookWithSecret:
        """The response contains the new secret. For `overlap_seconds` each message is signed with
        both secrets, the new one first, so that the receiver can be updated without a missed
        message. A webhook has at most two secrets: another rotation during the overlap ends the
        oldest."""
        answer: schemas.WebhookWithSecret = self._http.json(
            "POST",
            f"/v1/webhooks/{quoted(webhook_id)}/rotate-secret",
            headers={
                "Idempotency-Key": idempotency_key,
            },
            body=body,
        )
        return answer

    def ping(
        self,
        webhook_id: schemas.WebhookId,
        *,
        idempotency_key: Optional[str] = None,
    ) -> schemas.Delivery:
        """Sends a message of the type `webhook.ping`, whatever event types the webhook selects. It
        is signed, logged and retried like every other message. The log shows the outcome."""
        answer: schemas.Delivery = self._http.json(
            "POST",
            f"/v1/webhooks/{quoted(webhook_id)}/ping",
            headers={
                "Idempotency-Key": idempotency_key,
            },
        )
        return answer

    def list_deliveries(
        self,
        webhook_id: schemas.WebhookId,
        *,
        after: Optional[schemas.DeliveryId] = None,
        limit: Optional[int] = None,
    ) -> Iterator[schemas.Delivery]:
        """One page of the log, which keeps the newest 1,000 messages, each with its last 20
        attempts."""
        return self._http.pages(
            f"/v1/webhooks/{quoted(webhook_id)}/deliveries",
            query={
                "after": after,
                "limit": limit,
            },
        )

    def redeliver(
        self,
        webhook_id: schemas.WebhookId,
        delivery_id: schemas.DeliveryId,
        *,
        idempotency_key: Optional[str] = None,
    ) -> schemas.Delivery:
        """Sends a message of the log again with the same `webhook-id`, and begins with the first
        attempt. The request changes nothing while the message is `pending`."""
        answer: schemas.Delivery = self._http.json(
            "POST",
            f"/v1/webhooks/{quoted(webhook_id)}/deliveries/{quoted(delivery_id)}/redeliver",
            headers={
                "Idempotency-Key": idempotency_key,
            },
        )
        return answer



class ProjectsOperations(Resource):
    def list(
        self,
    ) -> List[schemas.Project]:
        """All projects that have or had a resource, by name, with their quotas and current usage."""
        answer: List[schemas.Project] = self._http.json(
            "GET",
            "/v1/projects",
        )["data"]
        return answer

    def get(
        self,
        project: schemas.ProjectName,
    ) -> schemas.Project:
        """The quota of the project and its current usage. An unused name is an empty project
        without limits."""
        answer: schemas.Project = self._http.json(
            "GET",
            f"/v1/projects/{quoted(project)}",
        )
        return answer

    def put(
        self,
        project: schemas.ProjectName,
        body: schemas.ProjectRequest,
        *,
        idempotency_key: Optional[str] = None,
    ) -> schemas.Project:
        """Replaces all limits of the project; an absent limit is removed. Existing resources stay,
        even above the new limits; the project then cannot add more."""
        answer: schemas.Project = self._http.json(
            "PUT",
            f"/v1/projects/{quoted(project)}",
            headers={
                "Idempotency-Key": idempotency_key,
            },
            body=body,
        )
        return answer
