import { type CallResult, ZerofleetError } from '../../../../contracts/index.js';
import type { RankError } from '../../../../contracts/rank-protocol.js';
import { putOnce, readCallResult, typeIn } from '../../../../formats/calls/call-log.js';
import { callKey, callResultKey } from '../../../../formats/checkpoint/layout.js';
import { waitOrAbort } from '../../../../platform/process/retry.js';
import { callCounters, countCallsAnew } from '../../../../state/index.js';
import { deferred } from '../../../shared/deferred.js';
import { codeOf } from '../../../shared/errors.js';
import { type AttemptContext, retryStorage } from '../context.js';

/** Pause after a failed read of the counters. */
const RETRY_MS = 250;

/** Calls of a session, as seen by the agent that holds its lease. */
export class JobCalls {
  /** Number of the last call. */
  appended = 0;
  /** Number of the last call that has a result. */
  answered = 0;
  /** Step after which a `finish` ended the session; null before. */
  finishedStep: number | null = null;

  /** Loads that damaged the state of a generation: the next one refuses them. */
  private readonly refused = new Map<number, RankError>();
  private readonly listeners = new Set<() => void>();
  private readonly closed = new AbortController();
  private following: Promise<void> = Promise.resolve();

  private constructor(private readonly ctx: Pick<AttemptContext, 'deps' | 'job' | 'lease' | 'log'>) {}

  /** Reads the counters and follows them until `close`. */
  static async open(ctx: AttemptContext): Promise<JobCalls> {
    const calls = new JobCalls(ctx);
    await calls.read();
    calls.following = calls.follow();
    return calls;
  }

  /** Calls the listener when a counter has risen. Returns the unsubscription. */
  watch(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Waits for the result of a call. @throws the signal's reason */
  async untilAnswered(number: number, signal: AbortSignal): Promise<void> {
    const reached = deferred<void>();
    const unwatch = this.watch(() => this.answered >= number && reached.resolve());
    const onAbort = () => reached.reject(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      signal.throwIfAborted();
      if (this.answered < number) await reached.promise;
    } finally {
      unwatch();
      signal.removeEventListener('abort', onAbort);
    }
  }

  /**
   * Stores and counts the next call. A call that exists stays: it was stored before and not counted.
   * @param call bytes of its text, which may be many: a thread makes them
   * @param more bytes that are stored with it
   * @throws ZerofleetError `replay_differs` when another call exists
   */
  async append(call: Uint8Array, more = 0): Promise<void> {
    const { deps, job, lease } = this.ctx;
    const number = this.appended + 1;
    const content = Buffer.from(call.buffer, call.byteOffset, call.length);
    const before = await retryStorage(this.ctx, () =>
      putOnce(deps.objects, callKey(job.id, number), content),
    );
    if (before !== null && !before.equals(content))
      throw new ZerofleetError(
        'replay_differs',
        `call ${number} is stored with another content than the recorded samples and rewards give`,
      );
    const counted = {
      appended: number,
      answered: this.answered,
      is_finished: typeIn(content) === 'finish',
      bytes: content.length + more,
    };
    await lease.call((id) => deps.store.countCalls(id, counted));
    this.appended = Math.max(this.appended, number);
    this.wake();
  }

  /**
   * Stores the result of the next call and counts it. A result that exists stays: it has the same bytes, unless it
   * names a checkpoint. The lease is confirmed first, because the object store cannot refuse a result, and an error may
   * come from the loss of the lease.
   * @param digest state digest after a change of the state
   * @throws ZerofleetError `replay_differs`; the reason for which the lease was lost
   */
  async answer(number: number, result: Buffer, digest: string | null): Promise<void> {
    const { deps, job, lease } = this.ctx;
    const key = callResultKey(job.id, number);
    await lease.confirm();
    const before = await retryStorage(this.ctx, () => putOnce(deps.objects, key, result));
    if (before !== null && digest !== null) checkDigest(number, JSON.parse(before.toString('utf8')), digest);
    const bytes = (before ?? result).length;
    const { appended } = this;
    await lease.call((id) => deps.store.countCalls(id, { appended, answered: number, bytes }));
    this.answered = Math.max(this.answered, number);
    this.wake();
  }

  /** Checks that a call which ran again has changed the state as before. @throws ZerofleetError `replay_differs` */
  async checkAgain(number: number, digest: string | null): Promise<void> {
    const { deps, job } = this.ctx;
    const before = await retryStorage(this.ctx, () => readCallResult(deps.objects, job.id, number));
    checkDigest(number, before, digest);
  }

  /** Returns the stored result of a call, also before it is counted; null without one. */
  async resultOf(number: number): Promise<CallResult | null> {
    const { deps, job } = this.ctx;
    const reading = retryStorage(this.ctx, () => readCallResult(deps.objects, job.id, number));
    return reading.catch((error: unknown) => {
      if (codeOf(error) === 'object_not_found') return null;
      throw error;
    });
  }

  refuse(number: number, error: RankError): void {
    this.refused.set(number, error);
  }

  refusalOf(number: number): RankError | null {
    return this.refused.get(number) ?? null;
  }

  /** Idempotent. */
  async close(): Promise<void> {
    this.closed.abort();
    await this.following;
  }

  private async follow(): Promise<void> {
    const { deps, job, log } = this.ctx;
    const { signal } = this.closed;
    const options = { timeoutMs: deps.timing.lease_ms / 3, signal };
    while (!signal.aborted) {
      try {
        // The timeout finds counters that Redis has lost.
        await deps.store.waitCalls(job.id, ({ appended }) => appended > this.appended, options);
        if (!signal.aborted) await this.read();
      } catch (error) {
        if (signal.aborted || this.ctx.lease.lost.aborted) return;
        log.warn({ err: error }, 'counters of calls not read');
        await waitOrAbort(RETRY_MS, signal);
      }
    }
  }

  private async read(): Promise<void> {
    const { deps, lease } = this.ctx;
    const before = { appended: this.appended, answered: this.answered };
    const { appended, answered } = await lease.call((id) => callCounters(deps, id));
    // Redis was restored from an older copy.
    if (appended < before.appended || answered < before.answered) {
      await lease.call((id) => countCallsAnew(deps, id));
      await lease.call((id) => deps.store.countCalls(id, { ...before, bytes: 0 }));
    }
    const rises = appended > this.appended || answered > this.answered;
    this.appended = Math.max(this.appended, appended);
    this.answered = Math.max(this.answered, answered);
    if (rises) this.wake();
  }

  private wake(): void {
    for (const listener of [...this.listeners]) listener();
  }
}

function checkDigest(number: number, before: object, digest: string | null): void {
  const expected = 'state_digest' in before ? before.state_digest : null;
  if (expected === digest) return;
  throw new ZerofleetError(
    'replay_differs',
    `call ${number} was run again and gave ${stateText(digest)}, but its result has ${stateText(expected)}: run the ` +
      'session on workers whose ranks compute the same bits',
  );
}

function stateText(digest: unknown): string {
  return digest === null ? 'no new state' : `the state ${digest}`;
}
