/** A new user's way through the console, with real workers. */
import t from 'tap';
import { ensureBrowser, openPage } from '../../api/testing/browser.js';
import { collect } from '../../clients/typescript/index.js';
import { startStack } from '../support/stack.js';
import { firstLora } from './first-lora.js';
import { walk } from './new-user.js';

const skip = await ensureBrowser();

t.test('from signing in to a download', { skip, timeout: 900_000 }, async (t) => {
  const { client } = await startStack(t);
  const { page, complaints } = await openPage(t);
  const { url } = await client.sessions.address();
  const stages: string[] = [];
  const { run, twin, answer, downloaded } = await walk({
    page,
    address: url,
    done: (stage) => stages.push(stage),
  });
  t.strictSame(stages, [
    'signed in',
    'data read',
    'training',
    'paused',
    'resumed on 3 ranks',
    'equal digest shown',
    'answered',
    'downloaded',
  ]);
  t.ok(answer.length > 0);
  // 3,344,640 parameters of two bytes, and a header.
  t.ok(downloaded > 2 * 3_344_640);
  const digestsOf = async (id: string) =>
    new Map((await collect(client.jobs.checkpoints(id))).map((one) => [one.step, one]));
  const [paused, through] = [await digestsOf(run), await digestsOf(twin)];
  const both = [...paused.values()].filter(({ step }) => through.has(step));
  t.ok(both.some(({ world_size }) => world_size === 3));
  for (const { step, state_digest } of both)
    t.equal(through.get(step)?.state_digest, state_digest, `step ${step}`);
  // Before the sign-in; and dry runs of a form that is not filled in yet.
  t.strictSame(
    complaints.filter((text) => !/status of (401|422)/.test(text)),
    [],
  );
});

t.test('an adapter in at most 12 actions and without a red text', { skip, timeout: 900_000 }, async (t) => {
  const { client } = await startStack(t);
  const { page } = await openPage(t);
  const { url } = await client.sessions.address();
  const { actions, red, file } = await firstLora(page, url);
  t.ok(actions.length <= 12, actions.join(', '));
  t.strictSame(red, []);
  t.match(file, /^ckpt_\w{26}\.tar$/);
});
