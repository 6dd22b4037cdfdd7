import t from 'tap';
import type { Checkpoint } from '../../../../contracts/index.js';
import { deferred } from '../../../shared/deferred.js';
import { CallResults } from './call-results.js';

const SAVE = { number: 2, step: 1, result: null, digest: null };
const PASS = { number: 1, step: 1, result: '{"loss":1}', digest: null };
const STATE = { id: 'ckpt_1', step: 1 } as Checkpoint;

/** Results whose first one is stored when `first` resolves. */
function results() {
  const first = deferred<void>();
  const stored: [number, string][] = [];
  const errors: unknown[] = [];
  const answer = async (number: number, result: Buffer) => {
    if (number === 1) await first.promise;
    stored.push([number, result.toString('utf8')]);
  };
  return { all: new CallResults({ answer }, (error) => errors.push(error)), first, stored, errors };
}

t.test('the end gives up a result whose turn to wait for its save comes later', async (t) => {
  const { all, first, stored, errors } = results();
  all.add(PASS);
  all.add(SAVE);
  const closed = all.close();
  first.resolve();
  await closed;
  t.strictSame(stored, [[1, '{"loss":1}']]);
  t.strictSame(errors, [], 'this is no error: the next generation runs the call again');
});

t.test('the end waits for a result whose save exists', async (t) => {
  const { all, first, stored } = results();
  all.add(PASS);
  all.add(SAVE);
  all.saved(STATE);
  const closed = all.close();
  first.resolve();
  await closed;
  t.strictSame(stored[1], [2, '{"checkpoint":"ckpt_1","step":1}']);
});
