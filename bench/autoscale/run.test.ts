import t from 'tap';
import { Fleet } from './fleet.js';
import { playAlwaysOn, playController, playForesight, playTargetTracking } from './run.js';
import { TargetTracking } from './target-tracking.js';
import { type Trace, tracesOf } from './traces.js';

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

/** Machines that are wanted after each minute. */
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
  // Jobs of ten minutes, acceptable are ten minutes: one machine for each job that waits.
  const trace = traceOf([job(0, 10), job(0, 10), job(0, 10)]);
  const found = sizes(trace, 40);
  t.same(found.slice(0, 3), [0, 0, 3], 'after three of three datapoints, in proportion');
  // Asked for in minute 2, there in minute 5, and then 15 datapoints without a backlog.
  t.equal(
    found.findIndex((size, minute) => minute > 3 && size < 3),
    19,
  );
  const long = traceOf([job(0, 60)]);
  t.match(playTargetTracking(long, 600, true), { busy_killed: 0, unfinished: 0 });
  t.ok(playTargetTracking(long, 600, false).busy_killed > 0, 'without protection what works is taken');
  t.match(
    playTargetTracking(long, 3600, true),
    { unfinished: 1 },
    'what is no more than the target is never served',
  );
});

t.test('the controller waits for nothing but the machine, and leaves none behind', async (t) => {
  const own = playController(traceOf([job(0, 30), job(5, 30, 4)]), 120);
  t.match(own, { jobs: 2, unfinished: 0, busy_killed: 0, peak_gpus: 5 });
  t.ok(own.p95_wait_seconds <= 180 + 20, `${own.p95_wait_seconds} s`);
  t.ok(own.gpu_hours <= own.gpu_hours_needed + (5 * (180 + 120 + 40)) / 3600);
});

t.test('whoever knew what comes would wait for no machine, only for others', async (t) => {
  const apart = traceOf([job(1000, 30), job(9000, 30), job(20_000, 30)]);
  t.ok(playForesight(apart, 120).mean_wait_seconds <= 10);
  t.ok(playController(apart, 120).mean_wait_seconds >= 180);
  const one = { ...traceOf([job(1000, 30), job(1000, 30)]), gpus: 1 };
  const told = playForesight(one, 120);
  t.equal(told.mean_wait_seconds, 15 * 60, 'the second waits for the first');
  t.ok(told.gpu_hours <= playController(one, 120).gpu_hours + 0.1);
});

t.test('interruptions lose no job', async (t) => {
  const jobs = Array.from({ length: 20 }, (_, index) => job(index * 60, 90, 2));
  const own = playController({ ...traceOf(jobs), gpus: 50, interruptions_per_hour: 0.5 }, 120);
  t.ok(own.interrupted > 3, `${own.interrupted} machines were taken away`);
  t.match(own, { unfinished: 0, busy_killed: 0 });
});

t.test(
  'on bursts and long tails: at most half the waiting at no more cost, and nothing that works is ended',
  async (t) => {
    for (const [index, acceptable_minutes] of [
      [1, 40],
      [2, 5],
      [2, 10],
    ] as const) {
      const trace = tracesOf(1, 3)[index] as Trace;
      const own = playController(trace, 120);
      const other = playTargetTracking(trace, acceptable_minutes * 60, true);
      t.match(own, { unfinished: 0, busy_killed: 0 });
      t.ok(
        own.mean_wait_seconds <= other.mean_wait_seconds / 2,
        `${trace.name}: ${own.mean_wait_seconds} s of ${other.mean_wait_seconds} s`,
      );
      t.ok(own.gpu_hours <= other.gpu_hours, `${own.gpu_hours} GPU-hours of ${other.gpu_hours}`);
      t.ok(own.gpu_hours < playAlwaysOn(trace).gpu_hours / 2);
    }
  },
);
