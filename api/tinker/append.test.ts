/** Numbers of calls whose requests have a name. */
import t from 'tap';
import { callText } from '../../formats/calls/call-log.js';
import { callKey, callNumberKey } from '../../formats/checkpoint/layout.js';
import { withMethod } from '../testing/stack.js';
import { field, startTinker } from '../testing/tinker.js';

/** Tokens of a row whose call has more than 4 KiB. */
const TOKENS = 450;
const FLOAT32 = 1;
const INT64 = 2;

/** What follows `model_id` in a pass of one long row. */
function longPass(weight: number): Buffer {
  const tensor = (name: string, { buffer }: BigInt64Array | Float32Array, dtype: number) =>
    field(2, field(1, name), field(2, field(1, Buffer.from(buffer)), Buffer.from([3 * 8, dtype])));
  const tokens = field(1, Buffer.from(new Int32Array(TOKENS).fill(200).buffer));
  const datum = field(
    3,
    field(1, field(1, tokens)),
    tensor('target_tokens', new BigInt64Array(TOKENS).fill(200n), INT64),
    tensor('weights', new Float32Array(TOKENS).fill(weight), FLOAT32),
  );
  return Buffer.concat([Buffer.from([2 * 8, 7]), datum, field(4, 'cross_entropy')]);
}

t.test('numbers of calls', async (t) => {
  /** Runs behind the next write of a number, before the call is stored. */
  let afterClaim: (() => Promise<unknown>) | undefined;
  const tinker = await startTinker(t, {
    limits: { call_bytes: 10_000 },
    wrap: ({ objects }) => ({
      objects: withMethod(objects, 'put', async (key, ...rest) => {
        const stored = await objects.put(key, ...rest);
        if (!key.includes('/call-numbers/')) return stored;
        const run = afterClaim;
        afterClaim = undefined;
        await run?.();
        return stored;
      }),
    }),
  });
  const { stack, send, post, wait, create, sendPass, readCall, createSampler, sampleOf } = tinker;
  const step = (model: string, seqId: number, rate = 0.5) =>
    send('optim_step', { model_id: model, seq_id: seqId, adam_params: { learning_rate: rate } });
  const numberOf = async (reply: ReturnType<typeof step>) => (await reply).json().request_id.split('.')[1];
  const numbersOf = async (model: string) => {
    const found: string[] = [];
    for await (const { key } of stack.objects.list(`jobs/${model}/call-numbers/`)) found.push(key);
    return found;
  };

  t.test('a call whose number another one has taken gets the next', async (t) => {
    const id = await create(0);
    await stack.objects.put(callKey(id, 1), Buffer.from('{"type":"save_state"}'));
    const reply = await sendPass(id, longPass(1));
    t.equal(reply.statusCode, 200, reply.body);
    t.match(await readCall(id, 2), { type: 'forward_backward', rows: [{ tokens: Array(TOKENS).fill(200) }] });
    t.same((await sendPass(id, longPass(1))).json(), reply.json(), 'also when it is repeated');
  });

  t.test('equal calls at once are two calls, and a repeated one is one', async (t) => {
    const id = await create(1);
    const numbers = await Promise.all([numberOf(step(id, 1)), numberOf(step(id, 2))]);
    t.same(numbers.toSorted(), ['1', '2']);
    const repeated = await Promise.all([numberOf(step(id, 3)), numberOf(step(id, 3))]);
    t.same(repeated, ['3', '3']);
    t.same(await Promise.all([numberOf(step(id, 1)), numberOf(step(id, 2))]), numbers);
  });

  t.test('a repeated request that overtakes the first one is the same call', async (t) => {
    const id = await create(5);
    await step(id, 1);
    const { request: _, ...call } = await readCall(id, 1);
    // As another server does.
    afterClaim = () =>
      stack.objects.put(callKey(id, 2), Buffer.from(callText({ ...call, request: 'training-2' })));
    t.equal(await numberOf(step(id, 2)), '2');
    t.equal((await stack.store.getCalls(id))?.appended, 2);
  });

  t.test('a request whose server ended before it stored the call gets a number of its own', async (t) => {
    const id = await create(6);
    await stack.objects.put(callNumberKey(id, 'training-1', 1), Buffer.from('1'));
    t.equal(await numberOf(step(id, 2)), '1', 'an equal call');
    t.equal(await numberOf(step(id, 1)), '2');
    t.equal(await numberOf(step(id, 1)), '2');
  });

  t.test('a refused call leaves nothing', async (t) => {
    const id = await create(2);
    const sampler = await createSampler(id);
    t.equal((await step(id, 1, -1)).statusCode, 400);
    t.same(await numbersOf(id), []);
    const sample = (seqId: number) => post('asample', sampleOf(sampler, seqId));
    const jobOf = (requestId: string) => requestId.split('.')[0];
    t.equal(jobOf((await sample(0)).request_id), id, 'the weights are the same');
    const url = `/v1/jobs/${id}/calls/2`;
    await stack.request({ method: 'PUT', url, payload: { type: 'optim_step', lr: 1 } });
    t.not(jobOf((await sample(1)).request_id), id, 'a call of another API has changed the weights');
  });

  t.test('a call is bounded as JSON', async (t) => {
    const id = await create(3);
    const reply = await sendPass(id, longPass(1 / 3));
    t.match([reply.statusCode, reply.json().error], [413, { code: 'payload_too_large' }]);
    t.same(await numbersOf(id), []);
  });

  t.test('the numbers are removed with the job', async (t) => {
    const id = await create(4);
    await wait((await step(id, 1)).json().request_id);
    t.equal((await numbersOf(id)).length, 1);
    await stack.request({ method: 'POST', url: `/v1/jobs/${id}/cancel` });
    t.equal((await stack.request({ method: 'DELETE', url: `/v1/jobs/${id}` })).statusCode, 204);
    t.same(await numbersOf(id), []);
  });
});
