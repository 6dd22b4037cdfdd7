/**
 * Autoscaling as of KEDA and Karpenter on Kubernetes, by their documentation:
 *
 * - KEDA polls the queue every 30 s (`pollingInterval`) and creates the pods of each waiting job; a job's pods start
 *   together.
 * - Karpenter waits until no further pod has come for a second (`batchIdleDuration`) and launches nodes for all pods
 *   that fit on none. Here that is the next step of the simulation.
 * - A node that has been empty for `consolidateAfter` is ended. Pods of training jobs are not moved
 *   (`karpenter.sh/do-not-disrupt`), so nodes that are used in part stay.
 */
import type { Fleet, Scaler } from './fleet.js';

const POLL_SECONDS = 30;

export class KarpenterLike implements Scaler {
  private readonly most: number;
  private readonly emptySince = new Map<string, number>();
  private next = 0;

  constructor(
    { trace }: Fleet,
    private readonly consolidateAfterSeconds: number,
  ) {
    this.most = Math.floor(trace.gpus / trace.slots);
  }

  step(fleet: Fleet): void {
    if (fleet.now >= this.next) {
      this.next = fleet.now + POLL_SECONDS;
      this.launch(fleet);
    }
    this.consolidate(fleet);
  }

  private launch(fleet: Fleet): void {
    const { slots } = fleet.trace;
    const nodes = fleet.stayingMachines();
    const pods = fleet.waiting.reduce((sum, { want }) => sum + want, 0);
    const room =
      nodes.reduce((sum, { free }) => sum + free, 0) + Math.max(0, fleet.wanted - nodes.length) * slots;
    const missing = Math.max(0, Math.ceil((pods - room) / slots));
    fleet.wanted = Math.min(this.most, Math.max(fleet.wanted, nodes.length) + missing);
  }

  private consolidate(fleet: Fleet): void {
    const demand = fleet.waiting.length > 0;
    for (const node of fleet.stayingMachines()) {
      const isEmpty = fleet.isReady(node) && node.jobs.size === 0 && !demand;
      if (!isEmpty) {
        this.emptySince.delete(node.id);
        continue;
      }
      const since = this.emptySince.get(node.id) ?? fleet.now;
      this.emptySince.set(node.id, since);
      if (fleet.now - since < this.consolidateAfterSeconds) continue;
      fleet.wanted -= 1;
      fleet.end(node);
    }
  }
}
