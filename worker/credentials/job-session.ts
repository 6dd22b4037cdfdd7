import type { RetryPolicy, SessionCredentials } from '../../contracts/rank-protocol.js';
import { backoffMs, retry, waitOrAbort } from '../../platform/process/retry.js';
import { isRefusal } from './refusal.js';
import { SESSION_SECONDS } from './session-time.js';

export interface JobSessionOptions {
  assume(): Promise<SessionCredentials>;
  /** Until the first credentials are there; renewals are tried for as long as the session is open. */
  retry: RetryPolicy;
  /** Ends the wait for the first ones. */
  signal: AbortSignal;
  /** Called when a renewal fails that the one before did not. */
  onFailed(error: unknown): void;
}

/** Of what is left of the credentials' time, this much is used before new ones are asked for: the rest is for an STS that is away. */
const USED_PART = 0.5;

type Listener = (credentials: SessionCredentials) => void;

/** The credentials of one job on this machine, renewed until the session is closed. */
export class JobSession {
  private readonly listeners = new Set<Listener>();
  private readonly closed = new AbortController();
  private readonly renewing: Promise<void>;

  private constructor(
    private readonly options: JobSessionOptions,
    private credentials: SessionCredentials,
  ) {
    this.renewing = this.renewForever();
  }

  /** @throws ZerofleetError `credentials_unavailable`; the signal's reason */
  static async open(options: JobSessionOptions): Promise<JobSession> {
    const { assume, retry: policy, signal } = options;
    signal.throwIfAborted();
    const first = await retry(assume, policy, {
      retryable: (error) => !isRefusal(error),
      signal,
    });
    signal.throwIfAborted();
    return new JobSession(options, first);
  }

  /** @param listener gets the credentials at once, and again whenever they are renewed. @returns ends it */
  watch(listener: Listener): () => void {
    this.listeners.add(listener);
    listener(this.credentials);
    return () => this.listeners.delete(listener);
  }

  /** Nothing is renewed any more; credentials that were given end by themselves. Idempotent. */
  async close(): Promise<void> {
    this.closed.abort();
    this.listeners.clear();
    await this.renewing;
  }

  private async renewForever(): Promise<void> {
    const { signal } = this.closed;
    for (let failures = 0; ; ) {
      const pause_ms = failures === 0 ? this.untilRenewalMs() : backoffMs(this.options.retry, failures);
      await waitOrAbort(pause_ms, signal);
      if (signal.aborted) return;
      failures = (await this.renew(failures === 0)) ? 0 : failures + 1;
    }
  }

  private async renew(is_first: boolean): Promise<boolean> {
    const { assume, onFailed } = this.options;
    try {
      this.credentials = await assume();
    } catch (error) {
      if (is_first && !this.closed.signal.aborted) onFailed(error);
      return false;
    }
    for (const listener of this.listeners) listener(this.credentials);
    return true;
  }

  private untilRenewalMs(): number {
    const told_ms = Date.parse(this.credentials.expires_at) - Date.now();
    const most_ms = SESSION_SECONDS * 1000;
    // Otherwise one of the clocks is wrong, and there is as much as was asked for.
    const left_ms = told_ms > 0 && told_ms < most_ms ? told_ms : most_ms;
    return left_ms * USED_PART;
  }
}
