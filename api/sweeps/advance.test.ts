import t from 'tap';
import type { Sweep, SweepRun } from '../../contracts/index.js';
import type { StoredSweep } from '../../state/index.js';
import { advance, cancelledSweep, pausedSweep, type RunView, resumedSweep, type Views } from './advance.js';

const AT = '2026-11-21T09:00:00.000Z';
const RUNGS = [
  { step: 10, runs: 9 },
  { step: 30, runs: 3 },
  { step: null, runs: 1 },
];
const STEPS = 90;

function sweepOf(rungs: Sweep['rungs'], numRuns: number, changes: Partial<Sweep> = {}): StoredSweep {
  const runs = Array.from(
    { length: numRuns },
    (_, i): SweepRun => ({
      job_id: `job_${i}`,
      name: `run ${i}`,
      values: { lr: i },
      state: 'waiting',
      rung: 0,
      evaluations: [],
      failure: null,
    }),
  );
  const sweep = {
    id: 'swp_1',
    state: 'running',
    metric: 'eval_loss',
    rungs,
    runs,
    max_concurrent: 2,
    best: null,
    ended_at: null,
    ...changes,
  };
  return { id: 'swp_1', project: 'default', name: 'n', bytes: 0, tasks: {}, sweep: sweep as Sweep };
}

/** The evaluation of a run at a step; after step 10 run 4 is the best, at the end run 7. */
const lossOf = (run: number, step: number) => Math.abs(run - (step >= STEPS ? 7 : 4)) + 1 / step;

/** Jobs that train a random number of steps between two looks, and do what the tasks say. */
class Simulation {
  readonly jobs = new Map<string, { state: RunView['state']; step: number }>();

  constructor(
    public stored: StoredSweep,
    private readonly random: () => number,
    private readonly failing: readonly string[] = [],
  ) {}

  look(): void {
    const { sweep } = this.stored;
    const views: Views = new Map(
      sweep.runs.flatMap((run, i): [string, RunView | null][] => {
        const job = this.jobs.get(run.job_id);
        if (job === undefined) return this.stored.tasks[run.job_id] === undefined ? [[run.job_id, null]] : [];
        const step = sweep.rungs[run.rung]?.step ?? null;
        const atRung = step !== null && job.step >= step ? lossOf(i, step) : undefined;
        const atEnd = job.state === 'succeeded' ? lossOf(i, job.step) : undefined;
        return [[run.job_id, { ...job, rung: run.rung, failure: null, atRung, atEnd }]];
      }),
    );
    this.stored = advance(this.stored, views, AT);
    const atWork = this.stored.sweep.runs.filter(({ state }) => state === 'running');
    if (atWork.length > sweep.max_concurrent) throw new Error('too many runs');
  }

  /** Performs some tasks, and trains. */
  work(): void {
    const tasks = { ...this.stored.tasks };
    for (const [id, task] of Object.entries(tasks)) {
      if (this.random() < 0.3) continue;
      const job = this.jobs.get(id);
      if (task === 'create') this.jobs.set(id, { state: 'running', step: 0 });
      else if (job && ['running', 'paused'].includes(job.state))
        job.state = task === 'pause' ? 'paused' : task === 'resume' ? 'running' : 'cancelled';
      delete tasks[id];
    }
    this.stored = { ...this.stored, tasks };
    this.train();
  }

  private train(): void {
    for (const [id, job] of this.jobs) {
      if (job.state !== 'running') continue;
      job.step = Math.min(STEPS, job.step + Math.floor(this.random() * 25));
      if (job.step > 5 && this.failing.includes(id)) job.state = 'failed';
      else if (job.step === STEPS) job.state = 'succeeded';
    }
  }

  toEnd(): Sweep {
    for (let looks = 0; this.stored.sweep.ended_at === null; looks += 1) {
      if (looks > 10_000) throw new Error('the sweep does not end');
      this.look();
      this.work();
    }
    return this.stored.sweep;
  }
}

function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1103515245 + 12345) % 2 ** 31;
    return state / 2 ** 31;
  };
}

const outcome = ({ state, best, runs }: Sweep) => ({
  state,
  best,
  runs: runs.map((run) => [run.state, run.rung, run.evaluations]),
});

t.test('successive halving ends the same in any order of the work', (t) => {
  const run = (seed: number, failing: string[] = []) =>
    outcome(new Simulation(sweepOf(RUNGS, 9), randomOf(seed), failing).toEnd());
  const expected = run(1);
  t.match(expected, { state: 'succeeded', best: 'job_4' });
  t.equal(expected.runs.filter(([state]) => state === 'stopped').length, 8);
  t.same(expected.runs[4]?.[2], [
    { step: 10, value: lossOf(4, 10) },
    { step: 30, value: lossOf(4, 30) },
    { step: STEPS, value: lossOf(4, STEPS) },
  ]);
  t.same(expected.runs[8]?.[2], [{ step: 10, value: lossOf(8, 10) }]);
  for (let seed = 2; seed < 60; seed += 1) t.same(run(seed), expected, `seed ${seed}`);
  const without = run(1, ['job_4']);
  t.match(without, { state: 'succeeded', best: 'job_3' }, 'a failed run leaves its place to the next one');
  for (let seed = 2; seed < 20; seed += 1) t.same(run(seed, ['job_4']), without, `seed ${seed}`);
  t.end();
});

t.test('without rungs each run trains to its end', (t) => {
  const all = outcome(new Simulation(sweepOf([{ step: null, runs: 9 }], 9), randomOf(3)).toEnd());
  t.match(all, { state: 'succeeded', best: 'job_7' });
  t.ok(all.runs.every(([state]) => state === 'succeeded'));
  const failing = Array.from({ length: 3 }, (_, i) => `job_${i}`);
  t.match(outcome(new Simulation(sweepOf([{ step: null, runs: 3 }], 3), randomOf(3), failing).toEnd()), {
    state: 'failed',
    best: null,
  });
  t.end();
});

t.test('a paused sweep begins no run and pauses its jobs, a resumed one continues to the same end', (t) => {
  const simulation = new Simulation(sweepOf(RUNGS, 9), randomOf(5));
  const expected = outcome(new Simulation(sweepOf(RUNGS, 9), randomOf(5)).toEnd());
  for (let looks = 0; looks < 4; looks += 1) {
    simulation.look();
    simulation.work();
  }
  simulation.stored = pausedSweep(simulation.stored);
  for (let looks = 0; looks < 40; looks += 1) {
    simulation.look();
    simulation.work();
  }
  t.notOk([...simulation.jobs.values()].some(({ state }) => state === 'running'));
  const begun = simulation.jobs.size;
  t.ok(begun < 9);
  simulation.look();
  t.equal(simulation.jobs.size, begun);
  t.equal(simulation.stored.sweep.state, 'paused');
  simulation.stored = resumedSweep(simulation.stored);
  t.same(outcome(simulation.toEnd()), expected);
  t.end();
});

t.test('a cancelled sweep cancels the jobs that it has begun', (t) => {
  const simulation = new Simulation(sweepOf(RUNGS, 9), randomOf(5));
  for (let looks = 0; looks < 4; looks += 1) {
    simulation.look();
    simulation.work();
  }
  const { sweep, tasks } = cancelledSweep(simulation.stored, AT);
  t.match(sweep, { state: 'cancelled', ended_at: AT });
  const unfinished = simulation.stored.sweep.runs.filter(({ state }) => ['running', 'held'].includes(state));
  t.same(new Set(Object.keys(tasks)), new Set(unfinished.map(({ job_id }) => job_id)));
  t.ok(Object.values(tasks).every((task) => task === 'cancel'));
  t.same(
    cancelledSweep({ ...simulation.stored, sweep }, 'later').sweep,
    sweep,
    'a repeated request changes nothing',
  );
  t.end();
});

t.test('a deleted job counts as cancelled, a loss that is not finite as the worst', (t) => {
  const deleted = new Simulation(sweepOf([{ step: null, runs: 2 }], 2), () => 0.9);
  deleted.look();
  deleted.work();
  deleted.jobs.delete('job_0');
  t.match(deleted.toEnd(), { state: 'succeeded', best: 'job_1', runs: [{ state: 'cancelled' }, {}] });
  const held = sweepOf([RUNGS[0] as never, { step: null, runs: 1 }], 2);
  const at = (value: number | null): RunView => ({
    state: 'running',
    rung: 0,
    step: 10,
    failure: null,
    atRung: value,
    atEnd: undefined,
  });
  const begun = { ...advance(held, new Map(), AT), tasks: {} };
  const { sweep } = advance(
    begun,
    new Map([
      ['job_0', at(null)],
      ['job_1', at(3)],
    ]),
    AT,
  );
  t.match(sweep.runs, [{ state: 'stopped' }, { state: 'running', rung: 1 }]);
  t.end();
});

t.test('what was read of a job before another server moved its run on decides nothing', (t) => {
  const stored = sweepOf(RUNGS, 1);
  const [run] = stored.sweep.runs as [SweepRun];
  const sweep = { ...stored.sweep, runs: [{ ...run, state: 'running' as const, rung: 1 }] };
  const view: RunView = { state: 'running', rung: 0, step: 10, failure: null, atRung: 1, atEnd: undefined };
  t.same(advance({ ...stored, sweep }, new Map([['job_0', view]]), AT).sweep.runs, sweep.runs);
  t.same(advance({ ...stored, sweep }, new Map(), AT).sweep.runs, sweep.runs, 'its job was not read');
  t.match(advance({ ...stored, sweep }, new Map([['job_0', null]]), AT).sweep.runs, [{ state: 'cancelled' }]);
  t.end();
});
