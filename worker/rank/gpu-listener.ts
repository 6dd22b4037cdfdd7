import type { RankError } from '../../contracts/rank-protocol.js';
import { deferred } from '../shared/deferred.js';
import type { NativeCore } from '../shared/native/adapter.js';
import { isSilent, withXids, xidText } from './xids.js';

/** Time that a rank may stay at its step after its GPU became silent. CUDA usually reports an error at once. */
const SILENT_TIMEOUT_MS = 30_000;

/**
 * Collects the driver's XIDs of this rank's GPU while the rank lives. The driver reports them only to subscribers at
 * the time, so a later inspection of the GPU would miss them.
 */
export class GpuListener {
  /** Rejects when the GPU is silent and the rank waits for it, because no call of the rank would report that. */
  readonly lost: Promise<never>;

  private readonly xids: number[] = [];
  private readonly end = deferred<never>();
  /** Time at which the GPU became silent, and the steps done by then. */
  private silence: { since: number; step: number } | null = null;

  /** Creates a listener. @param take returns the XIDs since its last call */
  constructor(
    private readonly take: () => number[],
    private readonly print: (line: string) => void,
    private readonly now: () => number = () => performance.now(),
  ) {
    this.lost = this.end.promise;
    this.lost.catch(() => undefined);
  }

  /** Creates the listener of a GPU. */
  static forGpu(core: NativeCore, uuid: string): GpuListener {
    return new GpuListener(core.watchGpu(uuid), (line) => console.error(line));
  }

  /** Polls the XIDs. Call it periodically. @param step steps done */
  listen(step: number): void {
    for (const xid of this.poll()) {
      this.print(`the driver reports for this rank's GPU: ${xidText(xid)}`);
      if (isSilent(xid)) this.silence ??= { since: this.now(), step };
    }
    if (!this.silence) return;
    if (this.silence.step !== step) this.silence = { since: this.now(), step };
    const waitedMs = Math.round(this.now() - this.silence.since);
    if (waitedMs < SILENT_TIMEOUT_MS) return;
    const message = `the rank waited for its GPU for ${waitedMs} ms`;
    this.end.reject(Object.assign(new Error(message), { code: 'gpu_lost' }));
  }

  /** Returns the rank's error with the XIDs of its lifetime. */
  explain(error: RankError): RankError {
    this.poll();
    return withXids(error, this.xids);
  }

  private poll(): number[] {
    const fresh = this.take();
    this.xids.push(...fresh);
    return fresh;
  }
}
