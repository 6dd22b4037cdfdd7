import { once } from 'node:events';
import type { PreemptionNotice, PreemptionSource } from './source.js';

/** Time that the end of this process takes after its jobs are returned. */
const MARGIN_MS = 2_000;

/** SIGTERM is the notice, and SIGKILL follows after a known time: the grace period of a pod. */
export class GracePeriod implements PreemptionSource {
  constructor(private readonly graceMs: number) {}

  async watch(signal: AbortSignal): Promise<PreemptionNotice | null> {
    const terminated = await once(process, 'SIGTERM', { signal }).then(
      () => true,
      () => false,
    );
    if (!terminated) return null;
    const left = Math.max(0, this.graceMs - MARGIN_MS);
    return { cause: 'end of the pod', terminates_at: Date.now() + left };
  }
}
