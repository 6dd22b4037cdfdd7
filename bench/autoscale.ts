/**
 * Waiting times and cost of autoscaling: `npm run bench -- autoscale`. Compares the autoscaler's controller, on a
 * virtual clock, with CloudWatch target tracking on backlog per instance and with KEDA and Karpenter, on the same
 * traces (bench/autoscale/). Prints one line per scaler and trace. Further lines are for always-on machines, for the
 * controller without moves of jobs, and for the controller that knows the jobs arriving within a boot time. This
 * knowledge gives the lower bound of any prediction. The last line compares the controller on each trace with the
 * target tracking setting of equal or next higher cost. The goal is at most half of its waiting time.
 */
import {
  type Outcome,
  playController,
  playKarpenter,
  playTargetTracking,
  runAlwaysOn,
  runWithForesight,
} from './autoscale/run.js';
import { TRACE_NAMES, type Trace, tracesOf } from './autoscale/traces.js';
import { benchOptions, count, counts } from './options.js';
import { report } from './report.js';

const { seed, traces, acceptable_minutes, consolidate_after_seconds, ...options } = benchOptions({
  seed: count(1),
  traces: count(TRACE_NAMES.length),
  idle_seconds: count(120),
  move_seconds: count(120),
  consolidate_after_seconds: count(30),
  acceptable_minutes: counts(5, 10, 20, 40),
});

const ratio = (a: number, b: number) => Math.round((1000 * a) / b) / 1000;

function tell(trace: Trace, scaler: string, outcome: object): void {
  report('autoscale', { trace: trace.name, gpus: trace.gpus, scaler, ...outcome });
}

interface Compared {
  acceptable_minutes: number;
  gpu_hours: number;
  mean_wait_seconds: number;
  wait_ratio: number;
  gpu_hours_ratio: number;
}

function compare(trace: Trace, own: Outcome, minutes: number): Compared {
  const other = playTargetTracking(trace, minutes * 60, true);
  const compared = {
    acceptable_minutes: minutes,
    gpu_hours: other.gpu_hours,
    mean_wait_seconds: other.mean_wait_seconds,
    wait_ratio: ratio(own.mean_wait_seconds, other.mean_wait_seconds),
    gpu_hours_ratio: ratio(own.gpu_hours, other.gpu_hours),
  };
  const unprotected = playTargetTracking(trace, minutes * 60, false);
  tell(trace, 'target tracking', {
    ...other,
    ...compared,
    busy_killed_without_protection: unprotected.busy_killed,
  });
  return compared;
}

const summary = [];
for (const trace of tracesOf(seed, traces)) {
  const began = performance.now();
  const own = playController(trace, options);
  const tookSeconds = Math.round(performance.now() - began) / 1000;
  tell(trace, 'controller', { ...options, ...own, took_seconds: tookSeconds });
  const { idle_seconds } = options;
  tell(trace, 'controller without moves', playController(trace, { idle_seconds, move_seconds: null }));
  const floor = runWithForesight(trace, options);
  tell(trace, 'foresight', floor);
  tell(trace, 'always on', runAlwaysOn(trace));
  const karpenter = playKarpenter(trace, consolidate_after_seconds);
  tell(trace, 'KEDA and Karpenter', { consolidate_after_seconds, ...karpenter });
  const others = acceptable_minutes.map((minutes) => compare(trace, own, minutes));
  const costlier = others.filter(({ gpu_hours_ratio }) => gpu_hours_ratio <= 1);
  const [nearest] = costlier.sort((a, b) => a.gpu_hours - b.gpu_hours);
  const { unfinished, busy_killed } = own;
  const isMet = nearest !== undefined && nearest.wait_ratio <= 0.5 && busy_killed === 0 && unfinished === 0;
  const floorRatio = nearest && ratio(floor.mean_wait_seconds, nearest.mean_wait_seconds);
  const overForesight = {
    gpu_hours: ratio(own.gpu_hours, floor.gpu_hours),
    karpenter_gpu_hours: ratio(karpenter.gpu_hours, floor.gpu_hours),
    wait_seconds: own.mean_wait_seconds - floor.mean_wait_seconds,
    karpenter_wait_seconds: karpenter.mean_wait_seconds - floor.mean_wait_seconds,
    ...(nearest && { target_tracking_wait_seconds: nearest.mean_wait_seconds - floor.mean_wait_seconds }),
  };
  summary.push({
    trace: trace.name,
    busy_killed,
    ...nearest,
    floor_ratio: floorRatio,
    over_foresight: overForesight,
    is_met: isMet,
  });
}
report('autoscale', { summary });
