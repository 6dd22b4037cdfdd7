/** Streams end with their API key. */
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { openStream } from '../../testing/sse-client.js';
import { startTestStack } from '../../testing/stack.js';

t.test('streams end when their key is revoked or expires; streams of other keys continue', async (t) => {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  const base = await stack.listen();
  const { store } = stack;
  const job = await stack.createJob();
  const open = async (secret: string, more = {}) => {
    const { id } = await store.putApiKey(secret, { name: secret, scopes: ['jobs:read'], ...more });
    const client = await openStream(`${base}/v1/jobs/${job.id}/stream`, secret);
    let ended = false;
    // The remaining stream of a job that never ends: empty until the connection is closed.
    const rest = client.rest().then(() => {
      ended = true;
    });
    return { id, rest, client, hasEnded: () => ended };
  };
  const kept = await open('zf_kept');
  const [one, two] = [await open('zf_revoked'), await open('zf_revoked')];
  t.equal(one.id, two.id);
  const expiresAt = new Date(Date.now() + 1500).toISOString();
  const expired = await open('zf_expired', { expires_at: expiresAt });
  await sleep(1100);
  t.notOk(one.hasEnded() || two.hasEnded() || kept.hasEnded(), 'they were looked up and are valid');
  await store.revokeApiKey(one.id);
  await Promise.all([one.rest, two.rest, expired.rest]);
  t.notOk(kept.hasEnded());
  kept.client.close();
  await kept.rest;
});
