import type { RetryPolicy, SessionCredentials } from '../../../contracts/rank-protocol.js';
import { backoffMs, retry, waitOrAbort } from '../../../platform/process/retry.js';
import { isRefusal } from './refusal.js';
import { SESSION_SECONDS } from './session-time.js';

export interface JobSessionOptions {
  assume(): Promise<SessionCredentials>;
  /** Retries of the first request; renewals are retried while the session is open. */
  retry: RetryPolicy;
  /** Aborts the first request. */
  signal: AbortSignal;
  /** Called on the first of consecutive failed renewals. */
  onFailed(error: unknown): void;
}

/** Part of the remaining lifetime after which credentials are renewed; the rest covers an STS outage. */
const USED_PART = 0.5;

type Listener = (credentials: SessionCredentials) => void;

/** Credentials of one job on this machine, renewed until the session is closed. */
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

  /**
   * Requests the first credentials.
   * @throws ZerofleetError `credentials_unavailable`; the signal's reason
   */
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

  /** The newest credentials. */
  get current(): SessionCredentials {
    return this.credentials;
  }

  /** Calls the listener with the credentials at once and after every renewal. Returns the unsubscription. */
  watch(listener: Listener): () => void {
    this.listeners.add(listener);
    listener(this.credentials);
    return () => this.listeners.delete(listener);
  }

  /** Stops renewing; issued credentials expire by themselves. Idempotent. */
  async close(): Promise<void> {
    this.closed.abort();
    this.listeners.clear();
    await this.renewing;
  }

  private async renewForever(): Promise<void> {
    const { signal } = this.closed;
    for (let failures = 0; ; ) {
      const pauseMs = failures === 0 ? this.untilRenewalMs() : backoffMs(this.options.retry, failures);
      await waitOrAbort(pauseMs, signal);
      if (signal.aborted) return;
      failures = (await this.renew(failures === 0)) ? 0 : failures + 1;
    }
  }

  private async renew(isFirst: boolean): Promise<boolean> {
    const { assume, onFailed } = this.options;
    try {
      this.credentials = await assume();
    } catch (error) {
      if (isFirst && !this.closed.signal.aborted) onFailed(error);
      return false;
    }
    for (const listener of this.listeners) listener(this.credentials);
    return true;
  }

  private untilRenewalMs(): number {
    const reportedMs = Date.parse(this.credentials.expires_at) - Date.now();
    const maxMs = SESSION_SECONDS * 1000;
    // A value out of range means that one of the clocks is wrong; the requested lifetime is used then.
    const leftMs = reportedMs > 0 && reportedMs < maxMs ? reportedMs : maxMs;
    return leftMs * USED_PART;
  }
}
