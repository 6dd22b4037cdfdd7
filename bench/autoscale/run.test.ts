import t from 'tap';
import { Fleet } from './fleet.js';
import { playController, playKarpenter, playTargetTracking, runAlwaysOn, runWithForesight } from './run.js';
import { TargetTracking } from './target-tracking.js';
import { type Trace, tracesOf } from './traces.js';

const OPTIONS = { idle_seconds: 120, move_seconds: 120 };

const job = (at: number, minutes: number, ranks = 1) => ({
  at,
  need: ranks,
  want: ranks,
  work: minutes * 60 * ranks,
});

const traceOf = (jobs: Trace['jobs']): Trace => ({
  name: 'test',
  slots: 1,
  gpus: 10,
  boot_seconds: 180,
  interruptions_per_hour: 0,
  jobs,
});

const TRACES = tracesOf(1, 3);
const played = new Map<number, ReturnType<typeof playController>>();

/** Returns the result of the controller without moves, played once per trace. */
function playStaying(index: number): ReturnType<typeof playController> {
  const found =
    played.get(index) ?? playController(TRACES[index] as Trace, { ...OPTIONS, move_seconds: null });
  played.set(index, found);
  return found;
}

/** Desired machines after each minute. */
function sizes(trace: Trace, minutes: number, protects = true): number[] {
  const fleet = new Fleet(trace);
  const scaler = new TargetTracking(fleet, { acceptable_seconds: 600, protects });
  const found: number[] = [];
  const step = {
    step: (now: Fleet) => {
      scaler.step(now);
      if (now.now % 60 === 0 && found.length < minutes) found.push(now.wanted);
    },
  };
  fleet.run(step);
  return found;
}

t.test('target tracking follows its documented rules', async (t) => {
  // Jobs of ten minutes, acceptable latency ten minutes: one machine per waiting job.
  const trace = traceOf([job(0, 10), job(0, 10), job(0, 10)]);
  const found = sizes(trace, 40);
  t.same(found.slice(0, 3), [0, 0, 3], 'proportional after three of three datapoints');
  // Requested in minute 2, in service in minute 5, followed by 15 datapoints without a backlog.
  t.equal(
    found.findIndex((size, minute) => minute > 3 && size < 3),
    19,
  );
  const long = traceOf([job(0, 60)]);
  t.match(playTargetTracking(long, 600, true), { busy_killed: 0, unfinished: 0 });
  t.ok(playTargetTracking(long, 600, false).busy_killed > 0, 'without protection busy machines are ended');
  t.match(
    playTargetTracking(long, 3600, true),
    { unfinished: 1 },
    'a backlog up to the target is never served',
  );
});

t.test('the controller waits only for machines and leaves none running', async (t) => {
  const own = playController(traceOf([job(0, 30), job(5, 30, 4)]), OPTIONS);
  t.match(own, { jobs: 2, unfinished: 0, busy_killed: 0, peak_gpus: 5 });
  t.ok(own.p95_wait_seconds <= 180 + 20, `${own.p95_wait_seconds} s`);
  t.ok(own.gpu_hours <= own.gpu_hours_needed + (5 * (180 + 120 + 30 + 40)) / 3600);
});

t.test('KEDA and Karpenter launch nodes for all waiting jobs, and end empty ones', async (t) => {
  const found = playKarpenter(traceOf([job(0, 30), job(5, 30, 4)]), 30);
  t.match(found, { jobs: 2, unfinished: 0, busy_killed: 0, vacated: 0, peak_gpus: 5 });
  t.ok(found.p95_wait_seconds <= 180 + 30 + 20, `${found.p95_wait_seconds} s`);
  t.ok(found.gpu_hours <= found.gpu_hours_needed + (5 * (180 + 30 + 30 + 60)) / 3600);
});

t.test('with foresight jobs wait for other jobs only, not for machines', async (t) => {
  const apart = traceOf([job(1000, 30), job(9000, 30), job(20_000, 30)]);
  t.ok(runWithForesight(apart, OPTIONS).mean_wait_seconds <= 10);
  t.ok(playController(apart, OPTIONS).mean_wait_seconds >= 180);
  const one = { ...traceOf([job(1000, 30), job(1000, 30)]), gpus: 1 };
  const foreseen = runWithForesight(one, OPTIONS);
  t.equal(foreseen.mean_wait_seconds, (30 * 60 + 30) / 2, 'the second waits for the first');
  t.ok(foreseen.gpu_hours <= playController(one, OPTIONS).gpu_hours + 0.1);
});

t.test('interruptions lose no job', async (t) => {
  const jobs = Array.from({ length: 20 }, (_, index) => job(index * 60, 90, 2));
  const own = playController({ ...traceOf(jobs), gpus: 50, interruptions_per_hour: 0.5 }, OPTIONS);
  t.ok(own.interrupted > 3, `${own.interrupted} machines were interrupted`);
  t.match(own, { unfinished: 0, busy_killed: 0 });
});

t.test(
  'without moves, on bursts and long tails: at most half the waiting at no more cost, no busy machine is ended',
  async (t) => {
    for (const [index, acceptableMinutes] of [
      [1, 40],
      [2, 5],
      [2, 10],
    ] as const) {
      const trace = TRACES[index] as Trace;
      const own = playStaying(index);
      const other = playTargetTracking(trace, acceptableMinutes * 60, true);
      t.match(own, { unfinished: 0, busy_killed: 0 });
      t.ok(
        own.mean_wait_seconds <= other.mean_wait_seconds / 2,
        `${trace.name}: ${own.mean_wait_seconds} s of ${other.mean_wait_seconds} s`,
      );
      t.ok(own.gpu_hours <= other.gpu_hours, `${own.gpu_hours} GPU-hours of ${other.gpu_hours}`);
      t.ok(own.gpu_hours < runAlwaysOn(trace).gpu_hours / 2);
    }
  },
);

t.test('moves empty machines: fewer GPU-hours, and jobs end hardly later', async (t) => {
  const moving = playController(TRACES[2] as Trace, OPTIONS);
  const staying = playStaying(2);
  t.match(moving, { unfinished: 0, busy_killed: 0 });
  t.equal(staying.vacated, 0);
  t.ok(moving.vacated > 10, `${moving.vacated} machines were emptied`);
  t.ok(moving.gpu_hours < 0.9 * staying.gpu_hours, `${moving.gpu_hours} of ${staying.gpu_hours}`);
  t.ok(moving.mean_turnaround_seconds < 1.02 * staying.mean_turnaround_seconds);
});
