import t from 'tap';
import type { Checkpoint } from '../../../../contracts/index.js';
import { deferred } from '../../../shared/deferred.js';
import { CallResults } from './call-results.js';

const SAVE = { number: 2, step: 1, result: null, digest: null };
const PASS = { number: 1, step: 1, result: Buffer.from('{"loss":1}'), digest: null };
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

t.test('a step is saved once, and again after a save that failed', async (t) => {
  const { all, first, stored } = results();
  first.resolve();
  t.equal(await all.beginSave(1, false), true);
  t.equal(await all.beginSave(1, false), false, 'a save is in progress');
  all.add(SAVE);
  const again = all.beginSave(1, true);
  all.notSaved(1, { code: 'disk_full', message: 'no space' });
  t.equal(await again, true, 'after the end of the first one');
  all.add({ ...SAVE, number: 3 });
  all.saved(STATE);
  t.equal(await all.beginSave(1, true), false);
  await all.until(3);
  t.match(
    stored.map(([, text]) => JSON.parse(text)),
    [{ error: { code: 'checkpoint_save_failed', message: /disk_full: no space/ } }, { checkpoint: 'ckpt_1' }],
  );
  const waiting = all.beginSave(2, false).then(() => all.beginSave(2, true));
  await all.close();
  await t.rejects(waiting, /the ranks have ended/);
});

t.test('the bytes of a large result are stored as they came', async (t) => {
  const answered: Buffer[] = [];
  const all = new CallResults({ answer: async (_, result) => void answered.push(result) }, (error) =>
    t.error(error),
  );
  const bytes = new Uint8Array(100).subarray(10, 90);
  all.add({ ...PASS, result: bytes });
  await all.until(1);
  t.equal(answered[0]?.buffer, bytes.buffer, 'without a copy');
  t.equal(answered[0]?.length, 80);
});
