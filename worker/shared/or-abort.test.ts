import t from 'tap';
import { deferred } from './deferred.js';
import { orAbort } from './or-abort.js';

t.test('a wait ends with the promise, or with the first signal', async (t) => {
  const [left, closing] = [new AbortController(), new AbortController()];
  t.equal(await orAbort(Promise.resolve(3), left.signal, closing.signal), 3);
  await t.rejects(orAbort(Promise.reject(new Error('its own')), left.signal), /its own/);
  const late = deferred<number>();
  const waiting = orAbort(late.promise, left.signal, closing.signal);
  left.abort(new Error('left'));
  await t.rejects(waiting, /left/);
  late.reject(new Error('nobody hears it'));
  await t.rejects(orAbort(Promise.resolve(3), closing.signal, left.signal), /left/, 'aborted before');
});
