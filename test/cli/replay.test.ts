import t from 'tap';
import { answerSessions, createSession } from '../../api/testing/sessions.js';
import type { Call, CallResult, Job, StoredCall } from '../../contracts/index.js';
import { start } from './command-line.js';

const ROW = { tokens: [1, 2], targets: [2, 3] };
const CHECKPOINT = 'ckpt_01KAJXAF2N4Q6S8V0X2Z4B6D8F';
const LOG: Call[] = [
  { type: 'forward_backward', loss: { type: 'cross_entropy' }, rows: [ROW] },
  { type: 'optim_step', lr: 0.5 },
  { type: 'save_state' },
  { type: 'forward', loss: { type: 'ppo' }, rows: [{ ...ROW, log_probs: [0, 0], advantages: [1, 1] }] },
];

t.test('a log is computed again, and the first difference is named', async (t) => {
  const { stack, zerofleet } = await start(t);
  /** Digest of updates, by session. */
  const digests = new Map<string, string>();
  const resultOf = (call: StoredCall, number: number, jobId: string): CallResult => {
    if (call.type === 'save_state') return { checkpoint: jobId.replace('job', 'ckpt'), step: 1 };
    if ('rows' in call) return { loss: number, num_targets: 2, log_probs: [[-1, -2]], metrics: {} };
    const digest = digests.get(jobId) ?? digests.get('') ?? '0'.repeat(32);
    return { step: 1, grad_norm: 1, lr: 0.5, finite: true, state_digest: digest };
  };
  const ended = new AbortController();
  const answering = answerSessions(stack, resultOf, ended.signal);
  t.teardown(async () => {
    ended.abort();
    await answering;
  });
  const session = await createSession(stack, { name: 'mine' });
  digests.set(session.id, '0'.repeat(32));
  t.match(await zerofleet(['replay', 'mine']), { code: 1, err: /no results to compare/ });
  for (const [i, payload] of LOG.entries())
    await stack.request({ method: 'PUT', url: `/v1/jobs/${session.id}/calls/${i + 1}`, payload });
  await stack.request({ method: 'GET', url: `/v1/jobs/${session.id}/calls/4/result?wait_seconds=60` });

  const same = await zerofleet(['replay', 'mine', '--ranks', '2']);
  t.match(same, { code: 0, out: 'all 4 results are the same, bit for bit' });
  const [made] = (await stack.store.listJobs()).data;
  t.match(made, { name: 'replay of mine', state: 'cancelled', requested_ranks: 2 });
  t.same(made?.spec.train, session.spec.train);

  digests.set('', '1'.repeat(32));
  const other = await zerofleet(['replay', session.id]);
  t.equal(other.code, 1);
  t.match(
    other.out,
    /^call 2 \(optim_step\) differs in state_digest:\n {2}session {2}"0+"\n {2}replay {3}"1+"$/,
  );
  t.match(JSON.parse((await zerofleet(['replay', session.id, '--json'])).out), {
    session: session.id,
    calls: 4,
    difference: { call: 2, type: 'optim_step', field: 'state_digest' },
  });

  const load = { type: 'load_state', checkpoint: CHECKPOINT, optimizer: true, prefix: 'p' };
  const loading: Job = await createSession(stack);
  await stack.objects.put(`jobs/${loading.id}/calls/000000000001.json`, Buffer.from(JSON.stringify(load)));
  await stack.store.countCalls(loading.id, { appended: 1, answered: 0, is_finished: false, bytes: 1 });
  await stack.request({ method: 'GET', url: `/v1/jobs/${loading.id}/calls/1/result?wait_seconds=60` });
  t.match(await zerofleet(['replay', loading.id]), { code: 1, err: /no save_state before it has made/ });
});
