import t from 'tap';
import { borrowed } from './borrowed.js';

t.test('a model without a chat template borrows that of another', async (t) => {
  t.same(borrowed(['a', null]), [undefined, 'a']);
  t.same(borrowed([null, 'b']), ['b', undefined]);
  t.same(borrowed(['a', 'b']), [undefined, undefined]);
  t.same(borrowed([null, null]), [undefined, undefined]);
});
