import t from 'tap';
import type { Problem, Sweep, SweepPlan } from '../../../contracts/index.js';
import { smallSweep } from '../../testing/stack.js';
import { postSweep, startWithSweeps } from '../../testing/sweeps.js';

t.test('the documents of all runs are checked before any begins', async (t) => {
  const { stack, dataset } = await startWithSweeps(t, 0);
  const sweep = smallSweep(dataset);
  const refused = async (changes: object) => {
    const reply = await postSweep(stack, '', { ...sweep, ...changes });
    t.equal(reply.statusCode, 422, reply.body);
    return reply.json<Problem>().errors;
  };
  t.match(await refused({ space: { 'train.optimizer.lrr': { values: [1, 2] } } }), [
    { pointer: '/space/train.optimizer.lrr', code: 'unknown_field', suggestion: 'lr' },
  ]);
  const bad = await refused({
    space: { 'train.optimizer.lr': { values: [0.1, -1] }, 'train.steps': { values: [5, 'x'] } },
  });
  t.match(bad.map(({ pointer }) => pointer).sort(), ['/space/train.optimizer.lr', '/space/train.steps']);
  t.match(bad.find(({ pointer }) => pointer.endsWith('lr'))?.message, /train.optimizer.lr = -1: /);
  const { data, ...spec } = sweep.spec;
  t.match(await refused({ spec: { ...spec, data: { dataset } } }), [
    { pointer: '/spec/data/validation_fraction', code: 'evaluation_missing' },
  ]);
  t.match(await refused({ spec: { ...spec, data, trian: {} } }), [
    { pointer: '/spec/trian', suggestion: 'train' },
  ]);
  t.match(await refused({ spec: { ...spec, data: { ...data, dataset: `ds_${'0'.repeat(26)}` } } }), [
    { pointer: '/spec/data/dataset', code: 'dataset_not_found' },
  ]);
  t.match(await refused({ space: { 'train.seed': { min: 1, max: 3 } } }), [{ code: 'sweep_values_missing' }]);
  t.match(await refused({ max_concurent: 2 }), [{ pointer: '/max_concurent', suggestion: 'max_concurrent' }]);
  const planned = await postSweep(stack, '?dry_run=true', sweep);
  t.equal(planned.statusCode, 200);
  t.same(
    planned.json<SweepPlan>().runs.map(({ name }) => name),
    ['rates lr=0.001', 'rates lr=0.002'],
  );
  t.match((await stack.request({ url: '/v1/sweeps' })).json(), { data: [] });
});

t.test('lists are by project, name and id; the number of unfinished sweeps is bounded', async (t) => {
  const { stack, dataset } = await startWithSweeps(t, 0);
  const sweep = smallSweep(dataset);
  const made = (await postSweep(stack, '', sweep)).json<Sweep>();
  await postSweep(stack, '', { ...sweep, name: 'other' });
  const list = async (query: string) =>
    (await stack.request({ url: `/v1/sweeps?${query}` })).json<{ data: Sweep[] }>().data;
  t.same(
    (await list('')).map(({ name }) => name),
    ['other', 'rates'],
  );
  t.same(await list('name=rates'), [made]);
  t.same(await list(`id_prefix=${made.id}`), [made]);
  const headers = await stack.headersIn('team-b');
  t.match((await stack.request({ url: '/v1/sweeps', headers })).json(), { data: [] });
  for (let more = 0; more < 18; more += 1) await postSweep(stack, '', sweep);
  t.match((await postSweep(stack, '', sweep)).json(), { code: 'too_many_sweeps' });
});
