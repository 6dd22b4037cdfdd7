import t from 'tap';
import { rangeOf } from './sweep-space.js';

t.test('values of a field', async (t) => {
  t.same(rangeOf('train.seed=1,2'), ['train.seed', { values: [1, 2] }]);
  t.same(rangeOf(' a = 1e-4, x,null,true '), ['a', { values: [1e-4, 'x', null, true] }]);
  t.same(rangeOf('a=hf://datasets/x/y.jsonl'), ['a', { values: ['hf://datasets/x/y.jsonl'] }]);
  t.same(rangeOf('a=1e-5..1e-2:log'), ['a', { min: 1e-5, max: 1e-2, scale: 'log' }]);
  t.same(rangeOf('a=-1..1'), ['a', { min: -1, max: 1 }]);
  t.same(rangeOf('a\\.b.c=x..y'), ['a\\.b.c', { values: ['x..y'] }]);
  for (const text of ['a', '=1', 'a=', 'a=1,,2', '']) t.equal(rangeOf(text), null, text);
});
