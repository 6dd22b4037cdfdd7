import { setImmediate as turn } from 'node:timers/promises';
import t from 'tap';
import { SLOW, setup, TASK, variantInput } from './testing/fake-engine.js';

t.test('each variant draws with its adapter; an unloaded one is removed from the engine', async (t) => {
  const { engine, sent, loop, closed } = await setup();
  for (const variant of [2, 9]) loop.take(variantInput(variant));
  await turn();
  t.match(sent, [
    { event: 'variant_loaded', variant: 1, bytes: 7 },
    { event: 'variant_loaded', variant: 2, bytes: 7 },
    { event: 'variant_failed', variant: 9, error: { code: 'tokenizer_invalid' } },
  ]);
  loop.take({ kind: 'sample', id: 1, variant: 1, request: TASK });
  loop.take({ kind: 'sample', id: 2, variant: 2, request: TASK });
  await turn();
  t.same(
    [...engine.sequences.values()].map(({ options }) => options.adapter),
    [0, 1],
  );
  for (const variant of [1, 2]) loop.take({ kind: 'unload_variant', variant });
  await turn();
  t.same([engine.removed, closed], [[1], [1, 2]]);
  t.match(sent.slice(-2), [
    { event: 'variant_unloaded', variant: 1 },
    { event: 'variant_unloaded', variant: 2 },
  ]);
  loop.take({ kind: 'sample', id: 3, variant: 2, request: TASK });
  await turn();
  t.match(sent.at(-1), { event: 'failed', id: 3, error: { code: 'internal_error' } });
});

t.test('requests join and leave at any step, each with its own answer', async (t) => {
  const { engine, sent, loop } = await setup();
  loop.take({ kind: 'sample', id: 1, variant: 1, request: TASK });
  await engine.next();
  loop.take({ kind: 'sample', id: 2, variant: 1, request: { ...TASK, seed: 0, n: 2 } });
  for (let step = 0; step < 4; step++) await engine.next();
  const done = sent.filter((message) => message.event === 'done');
  t.match(done, [
    { id: 1, sample: { prompt: 'to', choices: [{ text: 'fff', finish_reason: 'length' }] } },
    {
      id: 2,
      sample: {
        choices: [
          { index: 0, text: 'aaa' },
          { index: 1, text: 'bbb' },
        ],
      },
    },
  ]);
  t.match(done[1], { sample: { usage: { prompt_tokens: 2, cached_tokens: 2, completion_tokens: 6 } } });
  const sentDeltas = sent.flatMap((message) => (message.event === 'deltas' ? message.deltas : []));
  t.ok(sentDeltas.every(({ text, text_at }) => text_at + text.length <= 3));
});

t.test('the engine gets the options of the draw', async (t) => {
  const { engine, loop } = await setup();
  const options = { presence_penalty: 0.5, frequency_penalty: -1, top_p: 0.5 };
  loop.take({ kind: 'sample', id: 1, variant: 1, request: { ...TASK, ...options, logit_bias: { 7: -2.5 } } });
  await turn();
  t.match([...engine.sequences.values()][0]?.options, {
    ...options,
    logit_bias: [{ token: 7, bias: -2.5 }],
    seed: 5,
  });
});

t.test('a stop string cancels the sequence in the engine', async (t) => {
  const { engine, sent, loop } = await setup();
  loop.take({ kind: 'sample', id: 1, variant: 1, request: { ...TASK, max_tokens: 50, stop: ['ff'] } });
  await engine.next();
  await engine.next();
  t.match(sent.at(-1), { event: 'done', sample: { choices: [{ text: '', finish_reason: 'stop' }] } });
  t.equal(engine.cancelled.length, 1);
});

t.test(
  'a prompt that takes long holds up no other request, and no error of the engine is its own',
  async (t) => {
    const { engine, sent, loop } = await setup();
    loop.take({ kind: 'sample', id: 1, variant: 1, request: SLOW });
    loop.take({ kind: 'sample', id: 2, variant: 1, request: TASK });
    for (let step = 0; step < 3; step++) await engine.next();
    t.match(sent.at(-1), { event: 'done', id: 2 });
    loop.take({ kind: 'sample', id: 3, variant: 1, request: TASK });
    engine.failure = new Error('no memory');
    await engine.next();
    t.strictSame(
      sent.flatMap((message) => (message.event === 'failed' ? [message.id] : [])),
      [3],
    );
  },
);

t.test('a cancelled request is dropped', async (t) => {
  const { engine, sent, loop } = await setup();
  loop.take({ kind: 'sample', id: 1, variant: 1, request: { ...TASK, n: 3 } });
  await engine.next();
  loop.take({ kind: 'cancel', id: 1 });
  loop.take({ kind: 'cancel', id: 77 });
  t.equal(engine.sequences.size, 0);
  loop.take({ kind: 'sample', id: 3, variant: 1, request: SLOW });
  loop.take({ kind: 'cancel', id: 3 });
  loop.take({ kind: 'sample', id: 2, variant: 1, request: TASK });
  for (let step = 0; step < 4; step++) await engine.next();
  t.strictSame(
    sent.filter(({ event }) => event === 'done').map((message) => ('id' in message ? message.id : 0)),
    [2],
  );
});

t.test('an invalid request is refused, and others continue', async (t) => {
  const { engine, sent, loop } = await setup();
  loop.take({ kind: 'sample', id: 1, variant: 1, request: TASK });
  loop.take({ kind: 'sample', id: 2, variant: 1, request: { ...TASK, prompt: 'x'.repeat(99) } });
  await turn();
  t.match(sent.at(-1), { event: 'failed', id: 2, error: { code: 'prompt_too_long' } });
  for (let step = 0; step < 3; step++) await engine.next();
  t.match(sent.at(-1), { event: 'done', id: 1 });
});

t.test('an engine that fails ends all requests with its error', async (t) => {
  const { engine, sent, loop } = await setup();
  loop.take({ kind: 'sample', id: 1, variant: 1, request: TASK });
  loop.take({ kind: 'sample', id: 2, variant: 1, request: TASK });
  engine.failure = Object.assign(new Error('no memory'), { code: 'out_of_memory' });
  await engine.next();
  t.match(sent.slice(1), [
    { event: 'failed', id: 1, error: { code: 'out_of_memory' } },
    { event: 'failed', id: 2 },
  ]);
});

t.test('a lost device ends the loop, and fails no request', async (t) => {
  const { engine, sent, lost, loop } = await setup();
  loop.take({ kind: 'sample', id: 1, variant: 1, request: TASK });
  const failure = Object.assign(new Error('an uncorrectable ECC error'), { code: 'gpu_memory_fault' });
  engine.failure = failure;
  await engine.next();
  t.strictSame(lost, [failure]);
  t.notOk(sent.some((message) => message.event === 'failed'));
});
