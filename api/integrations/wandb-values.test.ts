import t from 'tap';
import { batchesOf, lineOf, newestStepOf, numbersOf, runIdOf, summaryLine, tagsOf } from './wandb-values.js';

t.test('each integration of a job has an id', async (t) => {
  t.equal(runIdOf('job_1', 0), 'job_1');
  t.equal(runIdOf('job_1', 2), 'job_1-2');
});

t.test('tags are the labels that W&B takes', async (t) => {
  t.same(tagsOf({ labels: { team: 'docs', nightly: '', long: 'x'.repeat(60), fits: 'x'.repeat(59) } }), [
    'team=docs',
    'nightly',
    `fits=${'x'.repeat(59)}`,
  ]);
});

t.test('requests have whole rows in order, and no more values than the limit', async (t) => {
  const rows = Array.from({ length: 7 }, (_, i) => ({ _step: i + 1, loss: 1, lr: 2 }));
  const batches = batchesOf(rows, 7);
  t.same(
    batches.map(({ length }) => length),
    [2, 2, 2, 1],
  );
  t.same(batches.flat(), rows);
  t.same(
    batchesOf(rows, 1),
    rows.map((row) => [row]),
    'a row that has more is alone',
  );
  t.same(batchesOf([], 7), []);
});

t.test('lines', async (t) => {
  t.equal(lineOf({ 'a"b': null, n: 1e-7, text: 'NaN' }), '{"a\\"b":NaN,"n":1e-7,"text":"NaN"}');
  const summary = '{"loss":NaN,"_runtime":7.9,"zerofleet.state":"failed","_wandb":{"runtime":7}}';
  t.equal(summaryLine({ loss: null, _runtime: 7.9 }, { 'zerofleet.state': 'failed' }), summary);
});

t.test('what the server tells of a run is bounded', async (t) => {
  const many = Object.fromEntries(Array.from({ length: 5000 }, (_, i) => [`n${i}`, i]));
  t.equal(Object.keys(numbersOf(JSON.stringify(many))).length, 1000);
  t.same(numbersOf(JSON.stringify({ ['x'.repeat(300)]: 1, a: 2 })), { a: 2 });
  t.equal(newestStepOf(JSON.stringify([`{"_step": ${'9'.repeat(400)}}`])), 0);
});

t.test('what the server tells of a run', async (t) => {
  t.equal(newestStepOf(null), 0);
  t.equal(newestStepOf('[]'), 0);
  t.equal(newestStepOf('no JSON'), 0);
  t.equal(newestStepOf(JSON.stringify(['{"_step": 1}', '{"loss":NaN,"_step": 12}'])), 12);
  t.same(numbersOf(null), {});
  t.same(numbersOf('no JSON'), {});
  t.same(numbersOf('{"a":1,"b": NaN,"c":"text","_wandb":{"runtime":1},"d":-Infinity}'), {
    a: 1,
    b: null,
    d: null,
  });
});
