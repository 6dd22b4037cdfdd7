import { type ControllerOptions, ControllerScaler } from './controller-scaler.js';
import { Fleet, type Scaler, STEP_SECONDS } from './fleet.js';
import { KarpenterLike } from './karpenter.js';
import { TargetTracking } from './target-tracking.js';
import type { Trace } from './traces.js';

export interface Outcome {
  jobs: number;
  /**
   * Jobs that did not start, or did not end within three days of the last arrival. Their waiting time until then
   * counts.
   */
  unfinished: number;
  /** Queue time of a job, summed over all its times in the queue. */
  mean_wait_seconds: number;
  p95_wait_seconds: number;
  /** From arrival to end. */
  mean_turnaround_seconds: number;
  gpu_hours: number;
  gpu_hours_needed: number;
  used_over_needed: number;
  busy_killed: number;
  /** Machines that were emptied by moves. */
  vacated: number;
  interrupted: number;
  peak_gpus: number;
}

/** Runs a trace to its end. */
function play(trace: Trace, scalerOf: (fleet: Fleet) => Scaler): Outcome {
  const fleet = new Fleet(trace);
  fleet.run(scalerOf(fleet));
  const late = fleet.waiting.map(({ waited, waits_since }) => waited + fleet.now - waits_since);
  const waits = [...[...fleet.done, ...fleet.running].map(({ waited }) => waited), ...late].sort(
    (a, b) => a - b,
  );
  const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const needed = trace.jobs.reduce((sum, { work }) => sum + work, 0);
  return {
    jobs: trace.jobs.length,
    unfinished: trace.jobs.length - fleet.done.length,
    mean_wait_seconds: Math.round(mean(waits)),
    p95_wait_seconds: Math.round(waits[Math.floor(0.95 * waits.length)] ?? 0),
    mean_turnaround_seconds: Math.round(mean(fleet.done.map(({ done_at, at }) => (done_at ?? 0) - at))),
    gpu_hours: Math.round(fleet.gpuSeconds / 360) / 10,
    gpu_hours_needed: Math.round(needed / 360) / 10,
    used_over_needed: Math.round((1000 * fleet.gpuSeconds) / needed) / 1000,
    busy_killed: fleet.busyKilled,
    vacated: fleet.vacated,
    interrupted: fleet.interrupted,
    peak_gpus: fleet.peakMachines * trace.slots,
  };
}

export const playController = (trace: Trace, options: ControllerOptions): Outcome =>
  play(trace, (fleet) => new ControllerScaler(fleet, options));

/**
 * The controller with knowledge of jobs one boot time before they arrive. No job waits for a machine that could have
 * been started, so the remaining waiting is between jobs. No prediction does better at the same cost.
 */
export const runWithForesight = (trace: Trace, options: ControllerOptions): Outcome =>
  playController(trace, { ...options, foresight_seconds: trace.boot_seconds + 2 * STEP_SECONDS });

/** The maximum number of machines until all jobs are done: no job waits for a machine, and nothing is saved. */
export const runAlwaysOn = (trace: Trace): Outcome =>
  play(trace, () => ({
    step(fleet) {
      const { jobs, slots, gpus } = trace;
      fleet.wanted = fleet.done.length < jobs.length ? Math.ceil(gpus / slots) : 0;
      if (fleet.wanted === 0) for (const machine of [...fleet.machines]) fleet.end(machine);
    },
  }));

export const playKarpenter = (trace: Trace, consolidateAfterSeconds: number): Outcome =>
  play(trace, (fleet) => new KarpenterLike(fleet, consolidateAfterSeconds));

export const playTargetTracking = (trace: Trace, acceptableSeconds: number, protects: boolean): Outcome =>
  play(trace, (fleet) => new TargetTracking(fleet, { acceptable_seconds: acceptableSeconds, protects }));
