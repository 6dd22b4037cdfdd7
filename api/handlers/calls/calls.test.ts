import t from 'tap';
import type {
  Call,
  CallAnswer,
  CallReceipt,
  DryRun,
  Job,
  Page,
  Problem,
  StoredCall,
} from '../../../contracts/index.js';
import { callKey } from '../../../formats/checkpoint/layout.js';
import { putTestCheckpoint } from '../../../formats/testing/checkpoints.js';
import { answerCall, createSession, smallSession } from '../../testing/sessions.js';
import { startTestStack } from '../../testing/stack.js';
import { checkpointOf } from '../../testing/training.js';

const ROW = { tokens: [1, 2, 3], targets: [2, 3, -100] };
const PASS = { type: 'forward_backward', loss: { type: 'cross_entropy' }, rows: [ROW] } satisfies Call;
const STEP = { type: 'optim_step', lr: 0.5 } satisfies Call;
const DIGEST = '0'.repeat(32);
const STEP_RESULT = { step: 1, grad_norm: 2, lr: 0.5, finite: true, state_digest: DIGEST };

t.test('calls of a session', async (t) => {
  const stack = await startTestStack({ limits: { call_bytes: 100_000 } });
  t.teardown(() => stack.close());
  const { store, objects } = stack;
  const put = (id: string, number: number | string, payload: object | string) =>
    stack.request({
      method: 'PUT',
      url: `/v1/jobs/${id}/calls/${number}`,
      headers: { 'content-type': 'application/json' },
      payload: typeof payload === 'string' ? payload : JSON.stringify(payload),
    });
  const read = async <T>(id: string, rest: string) =>
    (await stack.request({ method: 'GET', url: `/v1/jobs/${id}/calls${rest}` })).json<T>();
  const codeOf = async (reply: ReturnType<typeof put>) => (await reply).json<Problem>().code;
  const fieldsOf = async (id: string, call: object) => {
    const { errors } = (await put(id, 1, call)).json<Problem>();
    return errors.map(({ pointer, code }) => `${pointer} ${code}`);
  };

  t.test('a session is planned without data', async (t) => {
    const url = '/v1/jobs?dry_run=true';
    const dry = await stack.request({ method: 'POST', url, payload: smallSession });
    t.match(dry.json<DryRun>(), {
      spec: { train: { session: { idle_seconds: 900 } } },
      work: { sequences: null, sequences_per_epoch: null, duration: null },
    });
    const { data: _, ...without } = smallSession;
    const reply = await stack.request({
      method: 'POST',
      url,
      payload: { ...without, data: {}, train: { steps: 1 } },
    });
    t.match(reply.json<Problem>().errors, [{ pointer: '/data', code: 'exactly_one_of' }]);
  });

  t.test('a fork of a session is a session', async (t) => {
    const { id } = await createSession(stack);
    const claim = await store.claimAttempt(id, 1, 'worker', 60_000);
    if (!claim.granted) throw new Error(claim.code);
    const checkpoint = checkpointOf(id, 1);
    await putTestCheckpoint(objects, checkpoint.prefix, { numels: [10], ranks: 2 }, checkpoint.id);
    await store.commitCheckpoint(id, claim.execution, checkpoint);
    const reply = await stack.request({ method: 'POST', url: `/v1/jobs/${id}/fork`, payload: {} });
    t.equal(reply.statusCode, 201, reply.body);
    t.match(reply.json<Job>(), { spec: { train: { session: { idle_seconds: 900 } } } });
  });

  t.test('a call is stored with every field, and its result is read by number', async (t) => {
    const { id } = await createSession(stack);
    const first = await put(id, 1, PASS);
    t.equal(first.statusCode, 202);
    t.same(first.json<CallReceipt>(), { number: 1, type: 'forward_backward', state: 'pending' });
    t.equal((await put(id, 2, STEP)).statusCode, 202);
    t.same(await read<StoredCall>(id, '/1'), PASS);
    const update = { betas: [0.9, 0.95], eps: 1e-8, weight_decay: 0.1, gradient_clipping: 1 };
    t.same(await read<StoredCall>(id, '/2'), { ...STEP, ...update });
    t.same(await read<CallAnswer>(id, '/2/result'), { number: 2, state: 'pending' });
    await answerCall(stack, id, 1, { loss: 3, num_targets: 2, log_probs: [[-1, -2, null]], metrics: {} });
    await answerCall(stack, id, 2, STEP_RESULT);
    t.same(await read<CallAnswer>(id, '/2/result'), { number: 2, state: 'done', result: STEP_RESULT });
    t.same((await put(id, 2, STEP)).json<CallReceipt>(), { number: 2, type: 'optim_step', state: 'done' });
  });

  t.test('a repeated call changes nothing, another one is refused', async (t) => {
    const { id } = await createSession(stack);
    await put(id, 1, PASS);
    const again = await put(id, 1, { rows: PASS.rows, loss: PASS.loss, type: PASS.type });
    t.equal(again.statusCode, 200, 'the order of fields does not matter');
    t.equal(await codeOf(put(id, 1, STEP)), 'call_conflict');
    const early = await put(id, 3, STEP);
    t.match(early.json<Problem>(), { code: 'call_out_of_order', detail: /the next call of .* is 2/ });
    t.equal((await store.getCalls(id))?.appended, 1);
  });

  t.test('a call that was stored but not counted is counted by the next request', async (t) => {
    const { id } = await createSession(stack);
    const last = Buffer.from('{"type":"finish"}');
    await objects.put(callKey(id, 1), last);
    t.equal((await put(id, 1, { type: 'finish' })).statusCode, 200, 'its repetition');
    t.match(await store.getCalls(id), { appended: 1, is_finished: true });

    const { id: other } = await createSession(stack);
    await objects.put(callKey(other, 1), Buffer.from('{"type":"save_state"}'));
    t.equal(await codeOf(put(other, 1, STEP)), 'call_conflict', 'a client that does not know of it');
    t.equal((await put(other, 2, STEP)).statusCode, 202, 'goes on behind it');
  });

  t.test('nothing follows a finish', async (t) => {
    const { id } = await createSession(stack);
    await put(id, 1, { type: 'finish' });
    t.equal(await codeOf(put(id, 2, STEP)), 'session_finished');
    t.equal((await put(id, 1, { type: 'finish' })).statusCode, 200);
  });

  t.test('a reader is woken by the result', async (t) => {
    const { id } = await createSession(stack);
    await put(id, 1, PASS);
    const waiting = read<CallAnswer>(id, '/1/result?wait_seconds=60');
    await answerCall(stack, id, 1, { error: { code: 'no_gradients', message: 'none' } });
    t.match(await waiting, { state: 'done', result: { error: { code: 'no_gradients' } } });
  });

  t.test('a result that can no longer come is an error', async (t) => {
    const { id } = await createSession(stack);
    await put(id, 1, PASS);
    await stack.request({ method: 'POST', url: `/v1/jobs/${id}/cancel` });
    t.match(await read<Problem>(id, '/1/result'), { code: 'job_final', detail: /no result/ });
    t.equal(await codeOf(put(id, 2, STEP)), 'job_final');
  });

  t.test('the number of calls without a result is bounded', async (t) => {
    const { id } = await createSession(stack);
    for (let number = 1; number <= 64; number += 1) t.equal((await put(id, number, STEP)).statusCode, 202);
    t.equal(await codeOf(put(id, 65, STEP)), 'too_many_calls');
    await answerCall(stack, id, 1, STEP_RESULT);
    t.equal((await put(id, 65, STEP)).statusCode, 202);
  });

  t.test('the log is listed, newest first', async (t) => {
    const { id } = await createSession(stack);
    for (const [i, call] of [PASS, STEP, { type: 'save_state' }].entries()) await put(id, i + 1, call);
    await answerCall(stack, id, 2, STEP_RESULT);
    const page = await read<Page<object>>(id, '?limit=2');
    t.same(page, {
      data: [
        { number: 3, type: 'save_state', state: 'pending', state_digest: null },
        { number: 2, type: 'optim_step', state: 'done', state_digest: DIGEST },
      ],
      next_cursor: '2',
    });
    const rest = await read<Page<object>>(id, '?limit=2&after=2');
    t.match(rest, { data: [{ number: 1, type: 'forward_backward', state: 'done' }], next_cursor: null });
    t.match(await read<Problem>(id, '/4'), { code: 'call_not_found' });
    t.match(await read<Problem>(id, '/4/result'), { code: 'call_not_found' });
  });

  t.test('a session that was paused because it was idle is resumed by the next call', async (t) => {
    const pausedBy = async (reason: string) => {
      const { id } = await createSession(stack);
      await put(id, 1, STEP);
      const claim = await store.claimAttempt(id, 1, 'worker', 60_000);
      if (!claim.granted) throw new Error(claim.code);
      await answerCall(stack, id, 1, STEP_RESULT);
      await store.releaseAttempt(id, claim.execution, { to: 'paused', reason });
      return id;
    };
    const idle = await pausedBy('idle');
    t.match(await store.getJob(idle), { state: 'paused', reason: 'idle' });
    t.equal((await put(idle, 2, STEP)).statusCode, 202);
    t.equal((await store.getJob(idle))?.state, 'queued');
    const paused = await pausedBy('user_request');
    await put(paused, 2, STEP);
    t.equal((await store.getJob(paused))?.state, 'paused', 'as the user asked');

    const both = await pausedBy('idle');
    await stack.request({ method: 'POST', url: `/v1/jobs/${both}/pause` });
    await put(both, 2, STEP);
    t.equal((await store.getJob(both))?.state, 'paused', 'a user has paused what was idle');
  });

  t.test('an idle worker does not pause a session to which a call was added meanwhile', async (t) => {
    const { id } = await createSession(stack);
    const claim = await store.claimAttempt(id, 1, 'worker', 60_000);
    if (!claim.granted) throw new Error(claim.code);
    await put(id, 1, STEP);
    await store.releaseAttempt(id, claim.execution, { to: 'paused', reason: 'idle' });
    t.match(await store.getJob(id), { state: 'queued', reason: 'idle', attempt: 2 });
  });

  t.test('the counters are made again after a loss of Redis', async (t) => {
    const { id } = await createSession(stack);
    for (const [i, call] of [PASS, STEP, { type: 'finish' }].entries()) await put(id, i + 1, call);
    await answerCall(stack, id, 1, STEP_RESULT);
    await stack.loseRedis();
    t.equal(await store.getCalls(id), null);
    t.equal(await codeOf(put(id, 4, STEP)), 'session_finished');
    t.same(await store.getCalls(id), { appended: 3, answered: 1, is_finished: true });
    t.match(await read<CallAnswer>(id, '/1/result'), { state: 'done' });

    await stack.loseRedis();
    await answerCall(stack, id, 2, STEP_RESULT);
    t.equal(await store.getCalls(id), null, 'a worker has counted its result only');
    t.match(await read<CallAnswer>(id, '/2/result'), { state: 'done' });
    t.same(await store.getCalls(id), { appended: 3, answered: 2, is_finished: true });
  });

  t.test('every bad field of a call is named', async (t) => {
    const { id } = await createSession(stack);
    const pass = (rows: object[], loss: object = PASS.loss) => ({ ...PASS, loss, rows });
    t.same(await fieldsOf(id, { type: 'backward' }), ['/type unknown_value']);
    t.same(await fieldsOf(id, {}), ['/type missing_field']);
    t.same(await fieldsOf(id, { type: 'optim_step', rate: 1 }), ['/rate unknown_field']);
    t.same(await fieldsOf(id, pass([])), ['/rows wrong_length']);
    t.same(await fieldsOf(id, pass([{ tokens: [1, 256], targets: [-1, 999] }])), [
      '/rows/0/tokens/1 out_of_range',
      '/rows/0/targets/0 out_of_range',
    ]);
    t.same(await fieldsOf(id, pass([{ tokens: [1, 2], targets: [2], weights: [1, 1, 1] }])), [
      '/rows/0/targets wrong_length',
      '/rows/0/weights wrong_length',
    ]);
    const long = Array(17).fill(1);
    t.same(await fieldsOf(id, pass([{ tokens: long, targets: long }])), ['/rows/0/tokens wrong_length']);
    t.same(await fieldsOf(id, pass(Array(5).fill(ROW))), ['/rows wrong_length']);
    t.same(await fieldsOf(id, pass([ROW], { type: 'ppo', beta: 1 })), [
      '/loss/beta adapter_missing',
      '/rows/0/log_probs missing_field',
      '/rows/0/advantages missing_field',
    ]);
    t.same(await fieldsOf(id, pass([{ ...ROW, advantages: [1, 1, 1] }])), [
      '/rows/0/advantages field_without_effect',
    ]);
    const reference = { ...ROW, log_probs: [0, 0, 0] };
    t.same(await fieldsOf(id, pass([reference], { type: 'dpo' })), ['/rows wrong_length']);
    t.same(await fieldsOf(id, pass([reference, reference], { type: 'dpo', beta: 0 })), [
      '/loss/beta out_of_range',
    ]);
    const sample = { type: 'sample', prompts: [[1, 2]], max_tokens: 14 };
    t.same(await fieldsOf(id, { ...sample, max_tokens: 15, prompts: [[1, 300]] }), [
      '/prompts/0 wrong_length',
      '/prompts/0/1 out_of_range',
    ]);
    t.same(await fieldsOf(id, { ...sample, n: 1024, prompts: [[1], [2]] }), ['/n out_of_range']);
    t.equal(await store.getCalls(id), null, 'nothing is stored');
    t.equal((await put(id, 1, sample)).statusCode, 202);
    t.equal((await put(id, 2, pass([reference, reference], { type: 'dpo' }))).statusCode, 202);
    t.match(await read<StoredCall>(id, '/2'), { loss: { type: 'dpo', beta: 0.1 } });
  });

  t.test('a body that is no call, or too large', async (t) => {
    const { id } = await createSession(stack);
    t.equal(await codeOf(put(id, 1, '{"type":')), 'malformed_json');
    t.equal(await codeOf(put(id, 1, '[]')), 'validation_failed');
    t.equal(await codeOf(put(id, 1, '['.repeat(1000))), 'malformed_json');
    t.equal(await codeOf(put(id, 1, `"${'a'.repeat(100_001)}"`)), 'payload_too_large');
    t.equal(await codeOf(put(id, '0', STEP)), 'invalid_parameter');
  });

  t.test('a session loads its own checkpoints only', async (t) => {
    const [mine, theirs] = [await createSession(stack), await createSession(stack)];
    const checkpointIn = async ({ id }: Job) => {
      const claim = await store.claimAttempt(id, 1, 'worker', 60_000);
      if (!claim.granted) throw new Error(claim.code);
      const checkpoint = checkpointOf(id, 1);
      await store.commitCheckpoint(id, claim.execution, checkpoint);
      return checkpoint;
    };
    const [own, other] = [await checkpointIn(mine), await checkpointIn(theirs)];
    t.equal(
      await codeOf(put(mine.id, 1, { type: 'load_state', checkpoint: other.id })),
      'checkpoint_not_found',
    );
    t.equal((await put(mine.id, 1, { type: 'load_state', checkpoint: own.id })).statusCode, 202);
    const { id: checkpoint, prefix } = own;
    t.same(await read(mine.id, '/1'), { type: 'load_state', checkpoint, optimizer: true, prefix });
  });

  t.test('a job that trains on data has no calls', async (t) => {
    const { id } = await stack.createJob();
    t.equal(await codeOf(put(id, 1, STEP)), 'not_a_session');
    t.match(await read<Problem>(id, ''), { code: 'not_a_session' });
  });

  t.test('the log counts as stored bytes of the project', async (t) => {
    const { id } = await createSession(stack);
    const before = (await store.getUse('default')).checkpoint_bytes;
    await put(id, 1, PASS);
    const { length } = await objects.get(callKey(id, 1));
    t.equal((await store.getUse('default')).checkpoint_bytes, before + length);
    await stack.request({ method: 'POST', url: `/v1/jobs/${id}/cancel` });
    await stack.request({ method: 'DELETE', url: `/v1/jobs/${id}` });
    t.equal((await store.getUse('default')).checkpoint_bytes, before);
    for await (const { key } of objects.list(`jobs/${id}/calls/`)) t.fail(`${key} is left`);
  });
});
