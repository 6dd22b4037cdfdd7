import t from 'tap';
import { within } from './within.js';

t.test('resolves with the end of the work, its failure or the timeout, whichever comes first', async (t) => {
  const hour = 3_600_000;
  await within(hour, Promise.resolve('done'));
  await within(hour, Promise.reject(new Error('failed')));
  await within(1, new Promise(() => {}));
  t.pass('each call resolved');
});
