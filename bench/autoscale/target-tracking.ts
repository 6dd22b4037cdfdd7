/**
 * EC2 Auto Scaling's target tracking on a custom metric, backlog per instance, by Amazon's documents for queues:
 *
 * - The metric is what waits in the queue over the number of instances in service, once a minute. A backlog without instances counts
 *   as over one, for the group would never leave zero otherwise. To its favour it knows sizes: it is counted in machine-loads, not in jobs.
 * - The target is the acceptable backlog per instance: the acceptable latency over the average time of a job.
 * - The high alarm goes off after 3 of 3 datapoints above the target, the low one after 15 of 15 below 90 % of it. Each is evaluated
 *   every minute as long as it lasts.
 * - The new size is in proportion, rounded up: ceil(instances x metric / target). It only grows as far as it exceeds what is already
 *   asked for, and shrinks only when no instance is warming up (300 s by default), to no less than is in proportion.
 * - Instances protect themselves from scale-in while they work, as is recommended for such workers: of a group that should be smaller the
 *   idle ones end at once and the others as soon as they are idle. Without protection any may be taken, the oldest first.
 */
import type { Fleet, Scaler } from './fleet.js';

const MINUTE = 60;
const HIGH_DATAPOINTS = 3;
const LOW_DATAPOINTS = 15;
const LOW_SHARE = 0.9;
const WARM_UP_SECONDS = 300;

export interface TargetTrackingOptions {
  acceptable_seconds: number;
  protects: boolean;
}

export class TargetTracking implements Scaler {
  private readonly target: number;
  private readonly most: number;
  private readonly protects: boolean;
  private datapoints: number[] = [];
  private next = 0;

  constructor({ trace }: Fleet, { acceptable_seconds, protects }: TargetTrackingOptions) {
    const seconds = trace.jobs.reduce((sum, { work, want }) => sum + work / want, 0) / trace.jobs.length;
    this.target = acceptable_seconds / seconds;
    this.most = Math.ceil(trace.gpus / trace.slots);
    this.protects = protects;
  }

  step(fleet: Fleet): void {
    if (fleet.now >= this.next) {
      this.next = fleet.now + MINUTE;
      this.evaluate(fleet);
    }
    this.scaleIn(fleet);
  }

  private evaluate(fleet: Fleet): void {
    const inService = fleet.staying().filter((machine) => fleet.isReady(machine)).length;
    const backlog = fleet.waiting.reduce((sum, { want }) => sum + want, 0) / fleet.trace.slots;
    const metric = backlog / Math.max(1, inService);
    this.datapoints = [...this.datapoints, metric].slice(-LOW_DATAPOINTS);
    const size = Math.min(this.most, Math.ceil((Math.max(1, inService) * metric) / this.target));
    const high = this.datapoints.slice(-HIGH_DATAPOINTS);
    if (high.length === HIGH_DATAPOINTS && high.every((value) => value > this.target)) {
      fleet.wanted = Math.max(fleet.wanted, size);
    }
    const warms = fleet.machines.some(({ ready_at }) => ready_at + WARM_UP_SECONDS > fleet.now);
    const low =
      this.datapoints.length === LOW_DATAPOINTS &&
      this.datapoints.every((value) => value < LOW_SHARE * this.target);
    if (low && !warms) fleet.wanted = Math.min(fleet.wanted, size);
  }

  private scaleIn(fleet: Fleet): void {
    const staying = fleet.staying();
    let surplus = staying.length - fleet.wanted;
    for (const machine of staying) {
      if (surplus <= 0) return;
      if (!fleet.isReady(machine) || (this.protects && machine.jobs.size > 0)) continue;
      fleet.end(machine);
      surplus -= 1;
    }
  }
}
