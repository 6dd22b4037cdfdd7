import type { RankError } from '../../contracts/rank-protocol.js';
import { deferred } from '../common/deferred.js';
import type { NativeCore } from '../native/adapter.js';
import { isSilent, withXids, xidText } from './xids.js';

/** How long a rank may stay at its step after its GPU went silent. CUDA's own error mostly comes at once. */
const PATIENCE_MS = 30_000;

/**
 * Listens to what the driver reports of this rank's GPU while the rank lives. The driver tells it only to those who listen when it
 * happens, so a look at the GPU afterwards would not learn of it.
 */
export class GpuListener {
  /** Rejects when the GPU went silent and the rank waits for it: no call of the rank would ever say so. */
  readonly gone: Promise<never>;

  private readonly heard: number[] = [];
  private readonly end = deferred<never>();
  /** Since when it is silent, and the steps done at that time. */
  private silence: { since: number; step: number } | null = null;

  /** @param take XIDs since its last call */
  constructor(
    private readonly take: () => number[],
    private readonly say: (line: string) => void,
    private readonly now: () => number = () => performance.now(),
  ) {
    this.gone = this.end.promise;
    this.gone.catch(() => undefined);
  }

  /** @param device what the rank computes on; there is nothing to listen to on the CPU */
  static of(core: NativeCore, device: 'cpu' | 'cuda'): GpuListener | null {
    const uuid = device === 'cpu' ? undefined : core.cudaDevices()?.[0]?.uuid;
    return uuid === undefined ? null : new GpuListener(core.watchGpu(uuid), (line) => console.error(line));
  }

  /** To be called from time to time. @param step steps done */
  listen(step: number): void {
    for (const xid of this.hear()) {
      this.say(`the driver reports of this rank's GPU: ${xidText(xid)}`);
      if (isSilent(xid)) this.silence ??= { since: this.now(), step };
    }
    if (!this.silence) return;
    if (this.silence.step !== step) this.silence = { since: this.now(), step };
    const waited_ms = Math.round(this.now() - this.silence.since);
    if (waited_ms < PATIENCE_MS) return;
    const message = `the rank waited for its GPU for ${waited_ms} ms`;
    this.end.reject(Object.assign(new Error(message), { code: 'gpu_lost' }));
  }

  /** The rank's error, with what was reported while it lived. */
  explain(error: RankError): RankError {
    this.hear();
    return withXids(error, this.heard);
  }

  private hear(): number[] {
    const fresh = this.take();
    this.heard.push(...fresh);
    return fresh;
  }
}
