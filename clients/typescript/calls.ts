import type {
  Call,
  CallAnswer,
  CallReceipt,
  CallResult,
  CallSummary,
  Rollout,
  StoredCall,
} from '../../contracts/types.js';
import { allPages, type ListQuery } from './pages.js';
import { bodyOf, type Http } from './transport.js';

const WAIT_SECONDS = 30;

const at = (jobId: string, number: number) => ({ path: { job_id: jobId, number } });

/** Calls of sessions: jobs whose steps come from calls. */
export class Calls {
  constructor(private readonly http: Http) {}

  /** Appends a call under the next number; the same call under the same number changes nothing. */
  put(jobId: string, number: number, call: Call): Promise<CallReceipt> {
    const request = { params: at(jobId, number), body: call };
    return bodyOf(`call ${number} of ${jobId}`, this.http.PUT('/v1/jobs/{job_id}/calls/{number}', request));
  }

  /** The call as it is stored, with every field. */
  get(jobId: string, number: number): Promise<StoredCall> {
    const request = { params: at(jobId, number) };
    return bodyOf(`call ${number} of ${jobId}`, this.http.GET('/v1/jobs/{job_id}/calls/{number}', request));
  }

  /** The result, if it exists after `waitSeconds`, at most 60. */
  answer(
    jobId: string,
    number: number,
    { waitSeconds = 0, signal }: { waitSeconds?: number; signal?: AbortSignal } = {},
  ): Promise<CallAnswer> {
    const params = { ...at(jobId, number), query: { wait_seconds: waitSeconds } };
    return bodyOf(
      `result of call ${number} of ${jobId}`,
      this.http.GET('/v1/jobs/{job_id}/calls/{number}/result', { params, ...(signal && { signal }) }),
    );
  }

  /** Waits for the result. A call that could not be done has an `error` as its result. */
  async result(jobId: string, number: number, options: { signal?: AbortSignal } = {}): Promise<CallResult> {
    for (;;) {
      const { result } = await this.answer(jobId, number, { waitSeconds: WAIT_SECONDS, ...options });
      if (result !== undefined) return result;
    }
  }

  /** Samples and rewards of a step of reinforcement learning, by default of the newest one. */
  rollout(jobId: string, step?: number): Promise<Rollout> {
    const params = { path: { job_id: jobId }, query: step === undefined ? {} : { step } };
    return bodyOf(`rollout of ${jobId}`, this.http.GET('/v1/jobs/{job_id}/rollout', { params }));
  }

  /** Calls of a session, newest first. */
  list(jobId: string, query: ListQuery<'listCalls'> = {}): AsyncIterable<CallSummary> {
    const path = { job_id: jobId };
    return allPages((after) =>
      bodyOf(
        `calls of ${jobId}`,
        this.http.GET('/v1/jobs/{job_id}/calls', { params: { path, query: { ...query, after } } }),
      ),
    );
  }
}
