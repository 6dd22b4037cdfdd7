import t from 'tap';
import { numberIn } from './fields.js';

t.test('numbers as they are entered', async (t) => {
  t.equal(numberIn(' 1e-3 '), 1e-3);
  t.equal(numberIn(' '), undefined);
  for (const text of ['1e', 'x', 'Infinity']) t.equal(numberIn(text), text);
});
