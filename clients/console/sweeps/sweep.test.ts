import t from 'tap';
import type { SweepRun } from '../../../contracts/types.js';
import { fieldLabel, progressText, ranked } from './sweep.js';

const run = (name: string, state: SweepRun['state'], ...values: (number | null)[]): SweepRun => ({
  job_id: name,
  name,
  state,
  values: {},
  rung: 0,
  evaluations: values.map((value, step) => ({ step, value })),
  failure: null,
});

t.test('runs that came further stand first, of these the best', async (t) => {
  const runs = [
    run('waiting', 'waiting'),
    run('worse', 'stopped', 3),
    run('diverged', 'stopped', null),
    run('best', 'running', 2, 1),
    run('better', 'stopped', 2.5),
  ];
  t.same(
    ranked({ runs, metric: 'eval_loss' }).map(({ name }) => name),
    ['best', 'better', 'worse', 'diverged', 'waiting'],
  );
  t.same(
    ranked({ runs, metric: 'eval_reward/held-out' }).map(({ name }) => name),
    ['best', 'worse', 'better', 'diverged', 'waiting'],
    'of rewards the highest',
  );
  const rungs = [
    { step: 10, runs: 5 },
    { step: null, runs: 1 },
  ];
  t.equal(progressText({ runs, rungs }), '3 of 5 runs have ended · 5 until step 10, 1 to the end');
  t.equal(progressText({ runs, rungs: [{ step: null, runs: 5 }] }), '3 of 5 runs have ended');
  t.equal(fieldLabel('train.optimizer.lr'), 'lr');
});
