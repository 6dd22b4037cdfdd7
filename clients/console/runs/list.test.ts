import t from 'tap';
import type { Job } from '../../../contracts/types.js';
import { COLUMNS, merged, sorted, turned } from './columns.js';
import { hasText, queryOf, requestOf, viewOf } from './filters.js';
import { overlaid } from './overlay.js';

const job = (id: string, loss: number | null, more: Partial<Job> = {}) =>
  ({
    id,
    name: `run ${id}`,
    labels: {},
    progress: { loss },
    spec: {
      train: { optimizer: { lr: 1e-3 }, precision: 'bf16' },
      model: { preset: null, config: { model_type: 'llama' } },
    },
    ...more,
  }) as Job;
const ids = (jobs: readonly Job[]) => jobs.map(({ id }) => id).join('');

t.test('sorting by a column; runs without a value come last', async (t) => {
  const jobs = [job('a', 2), job('b', null), job('c', 1), job('d', 3)];
  t.equal(ids(sorted(jobs, { column: 'loss', descending: false })), 'cadb');
  t.equal(ids(sorted(jobs, { column: 'loss', descending: true })), 'dacb');
  t.equal(ids(sorted(jobs, null)), 'abcd');
  t.equal(ids(sorted(jobs, { column: 'unknown', descending: true })), 'abcd');
});

t.test('a click sorts the best first, the next one the worst first, a third one as before', async (t) => {
  const column = (name: string) => COLUMNS.find((one) => one.name === name) as (typeof COLUMNS)[0];
  for (const [name, descending] of [
    ['loss', false],
    ['evaluation', false],
    ['duration', false],
    ['tokens_per_second', true],
  ] as const) {
    const first = turned({ column: 'model', descending: true }, column(name));
    t.same(first, { column: name, descending });
    const second = turned(first, column(name));
    t.same(second, { column: name, descending: !descending });
    t.equal(turned(second, column(name)), null);
  }
});

t.test('datasets are sorted by their names', async (t) => {
  const of = (id: string, dataset: string) => job(id, 1, { spec: { data: { dataset } } as Job['spec'] });
  const names = new Map([
    ['ds_1', 'zebra'],
    ['ds_2', 'ape'],
  ]);
  const jobs = [of('a', 'ds_1'), of('b', 'ds_2'), of('c', 'ds_3')];
  t.equal(ids(sorted(jobs, { column: 'dataset', descending: false }, names)), 'bca');
});

t.test('texts of columns', async (t) => {
  const names = new Map([
    ['ds_1', 'chats'],
    ['ds_2', 'code'],
  ]);
  const text = (name: string, job: Job) => COLUMNS.find((column) => column.name === name)?.text(job, names);
  const data = (given: object) => job('a', 1, { spec: { data: given } as Job['spec'] });
  t.equal(text('dataset', data({ dataset: 'ds_1' })), 'chats');
  t.equal(text('dataset', data({ mixture: [{ dataset: 'ds_1' }, { dataset: 'ds_9' }] })), 'chats, ds_9');
  const evaluated = (train: object) =>
    job('a', 1, {
      spec: { train, checkpoint: { keep: {} } } as Job['spec'],
      progress: {
        evaluations: {
          validation: { step: 4, loss: 2, best_step: 2, best_loss: 1.5 },
          code: { step: 4, loss: 9, best_step: 4, best_loss: 9 },
        },
      } as unknown as Job['progress'],
    });
  t.equal(text('evaluation', evaluated({})), '1.5000', 'the best one of the first');
  t.equal(text('evaluation', evaluated({ early_stopping: { metric: 'eval_loss/code' } })), '9.0000');
  t.equal(text('duration', job('a', 1, { usage: { run_seconds: 65 } as Job['usage'] })), '1 min 5 s');
  const plain = job('a', 1.5);
  t.equal(text('lr', plain), '0.001');
  t.equal(text('method', plain), 'full');
  const spec = {
    ...plain.spec,
    train: { ...plain.spec.train, adapter: { type: 'lora' }, objective: { type: 'dpo' } },
  };
  t.equal(
    text('method', { ...plain, spec: { ...spec, model: { ...spec.model, quantization: 'nf4' } } } as Job),
    'lora nf4, dpo',
  );
});

t.test('a first page that is read again replaces the runs that it covers', async (t) => {
  const known = [job('c', 1), job('b', 1), job('a', 1)];
  const losses = (jobs: readonly Job[]) => jobs.map(({ id, progress }) => `${id}${progress.loss}`).join();
  t.equal(losses(merged(known, [job('d', 2), job('c', 2)], false)), 'd2,c2,b1,a1');
  t.equal(losses(merged(known, [job('d', 2), job('b', 2)], false)), 'd2,b2,a1', 'one has left the filter');
  t.equal(losses(merged(known, [job('d', 2)], true)), 'd2', 'there are no others');
  t.equal(losses(merged(known, [], true)), '');
  t.equal(losses(merged(known, [job('b', 2)], false, 'c')), 'c1,b2,a1', 'a later page');
  t.equal(losses(merged(known, [job('b', 2)], true, 'c')), 'c1,b2');
  t.equal(losses(merged(known, [], true, 'b')), 'c1,b1', 'all behind it are gone');
});

t.test('filters, columns and the order stand in the address', async (t) => {
  const filters = {
    ...({ text: 'a b', state: 'active', label: 'team=x', since: 'week' } as const),
    columns: ['loss', 'lr'],
    sorting: { column: 'lr', descending: true },
  };
  t.same(viewOf(new URLSearchParams(queryOf(filters))), filters);
  const ascending = { ...filters, sorting: { column: 'lr', descending: false }, columns: null };
  t.same(viewOf(new URLSearchParams(queryOf(ascending))), ascending);
  const none = viewOf(new URLSearchParams('state=nonsense&since=constructor'));
  t.same(none, { text: '', state: 'all', label: '', since: 'ever', columns: null, sorting: null });
  t.same(requestOf(none, 0), {});
  const now = Date.parse('2026-11-27T00:00:00Z');
  t.match(requestOf(filters, now), { label: ['team=x'], created_after: '2026-11-20T00:00:00.000Z' });
  t.same(requestOf({ ...none, label: 'half' }, now), {}, 'a label that is not yet written');
});

t.test('the text is looked for in name, id and labels', async (t) => {
  const one = { name: 'Big Run', id: 'job_9', labels: { team: 'alpha' } };
  for (const text of ['big', ' run', 'JOB_9', 'team=al', '']) t.ok(hasText(one, text), text);
  t.notOk(hasText(one, 'small'));
});

t.test('curves over the steps of all runs', async (t) => {
  const points = (...steps: [number, number][]) => steps.map(([step, loss]) => ({ step, values: { loss } }));
  t.same(overlaid([points([1, 5], [3, 4]), points([2, 9], [3, 8])], 'loss'), [
    [1, 2, 3],
    [5, null, 4],
    [null, 9, 8],
  ]);
});
