/**
 * EC2 Auto Scaling's target tracking on a custom metric, backlog per instance, as in Amazon's documentation for queues:
 *
 * - The metric is the queue length divided by the number of instances in service, once a minute. A backlog without
 *   instances counts as if there were one, because the group would never leave zero otherwise. In its favour, the
 *   backlog is counted in machine-loads, not in jobs.
 * - The target is the acceptable backlog per instance: the acceptable latency divided by the average time of a job.
 * - The high alarm fires after 3 of 3 datapoints above the target, the low one after 15 of 15 below 90 % of it. Each is
 *   evaluated every minute while it lasts.
 * - The new size is proportional, rounded up: ceil(instances x metric / target). The group only grows beyond pending
 *   launches, and shrinks only when no instance is warming up (300 s by default), and not below the proportional size.
 * - Busy instances are protected from scale-in, as recommended for such workloads: if the group shrinks, idle instances
 *   end immediately and the others as soon as they are idle. Without protection the oldest instances end first.
 */
import type { Fleet, Scaler } from './fleet.js';

const MINUTE = 60;
const HIGH_DATAPOINTS = 3;
const LOW_DATAPOINTS = 15;
const LOW_SHARE = 0.9;
const WARM_UP_SECONDS = 300;

interface TargetTrackingOptions {
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
    const inService = fleet.stayingMachines().filter((machine) => fleet.isReady(machine)).length;
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
    const stayingMachines = fleet.stayingMachines();
    let surplus = stayingMachines.length - fleet.wanted;
    for (const machine of stayingMachines) {
      if (surplus <= 0) return;
      if (!fleet.isReady(machine) || (this.protects && machine.jobs.size > 0)) continue;
      fleet.end(machine);
      surplus -= 1;
    }
  }
}
