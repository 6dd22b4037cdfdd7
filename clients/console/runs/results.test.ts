import t from 'tap';
import type { Job } from '../../../contracts/types.js';
import { bestOf, groupsOf, isIdentity, isScalar, labelsOf, resultOf } from './results.js';

const NAMES = ['validation', 'code'];

const jobOf = (labels: Record<string, string>, metric?: string, train: object = {}, names = NAMES) =>
  ({
    labels,
    spec: { train: { ...train, ...(metric && { early_stopping: { metric } }) }, checkpoint: { keep: {} } },
    progress: { evaluations: Object.fromEntries(names.map((name) => [name, {}])) },
  }) as unknown as Job;
const points: { values: Record<string, number | null> }[] = [
  { values: { loss: 9, 'eval code': 4, 'eval validation': 3 } },
  { values: { loss: 8 } },
  { values: { loss: 7, 'eval code': 1, 'eval validation': 2.5 } },
  { values: { loss: 7, 'eval code': 2, 'eval validation': 2.75 } },
];

t.test('best and last value of the evaluation', async (t) => {
  t.match(resultOf(jobOf({}), points), { best: 2.5, final: 2.75 });
  t.match(resultOf(jobOf({}, 'eval_loss/code'), points), { best: 1, final: 2 });
  t.match(resultOf(jobOf({}, 'eval_loss'), points), { best: 2.5 });
  const ofCode = jobOf({}, undefined, {}, ['code']);
  t.match(resultOf(ofCode, [{ values: { 'eval code': 4 } }]), { best: 4, final: 4 });
  t.match(resultOf(jobOf({}, undefined, {}, []), [{ values: { loss: 4 } }]), { best: null, final: null });
});

t.test('the best reward is the highest one', async (t) => {
  const job = jobOf({}, undefined, { objective: { type: 'grpo' } }, ['code']);
  const rewarded = [0.25, 0.75, 0.5].map((value) => ({ values: { 'eval reward code': value } }));
  const result = resultOf(job, rewarded);
  t.match(result, { metric: 'eval_reward/code', best: 0.75, final: 0.5 });
  const results = [result, { ...result, best: 0.875 }, { ...result, best: null }];
  t.equal(
    bestOf(results, ({ best }) => best),
    0.875,
  );
  const losses = results.map((each) => ({ ...each, metric: 'eval_loss' }));
  t.equal(
    bestOf(losses, ({ best }) => best),
    0.75,
  );
  t.equal(
    bestOf([...losses, { ...result, best: 0 }], ({ best }) => best),
    0.75,
    'a reward is no loss',
  );
});

t.test('groups by a label have means', async (t) => {
  const [a, b, c] = [jobOf({ team: 'a', one: '1' }), jobOf({ team: 'b', one: '1' }), jobOf({ one: '1' })];
  t.same(labelsOf([a, b, c]), ['team']);
  const results = [
    { job: a, best: 1, final: 3 },
    { job: b, best: null, final: null },
    { job: a, best: 2, final: 5 },
    { job: c, best: null, final: 4 },
  ].map((result) => ({ ...result, metric: 'eval_loss' }));
  t.match(groupsOf(results, 'team'), [
    { value: 'a', results: [{}, {}], best: 1.5, final: 4 },
    { value: 'b', best: null },
    { value: undefined, final: 4 },
  ]);
  t.match(groupsOf(results, ''), [{ results: [{}, {}, {}, {}], best: 1.5, final: 4 }]);
});

t.test('fields that say nothing about the training', async (t) => {
  const id = 'job_01KAJX9B2M4P6R8T0V2X4Z6B8D';
  t.ok(isIdentity({ values: [id, null] }));
  t.ok(isIdentity({ values: [`s3://bucket/jobs/${id}/export`, undefined] }));
  t.notOk(isIdentity({ values: [id, 'bytes'] }));
  t.ok(isScalar({ values: [1, 'a', undefined, true, null] }));
  t.notOk(isScalar({ values: [1, [2]] }));
});
