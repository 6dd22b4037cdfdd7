import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises';
import t from 'tap';
import type { SampleTask } from '../../../contracts/index.js';
import { setup, TASK } from './testing/fake-engine.js';

const CONSTRAINED: SampleTask = { ...TASK, max_tokens: 50, response_format: { type: 'json_object' } };

t.test('a constrained answer gets a mask for each token, and ends when it is complete', async (t) => {
  const { engine, sent, loop, masks } = await setup();
  loop.take({ kind: 'sample', id: 1, variant: 1, request: { ...CONSTRAINED, stop: ['x'] } });
  await turn();
  const [{ options } = { options: null }] = engine.sequences.values();
  t.match(options, { is_constrained: true, end_tokens: [] });
  for (let step = 0; step < 6; step++) await engine.next();
  t.match(sent.at(-1), { event: 'done', sample: { choices: [{ text: 'ffff', finish_reason: 'stop' }] } });
  t.same(
    masks.requests.map(({ tokens }) => [...tokens]),
    [[], [102], [102, 102], [102, 102, 102], [102, 102, 102, 102]],
  );
  t.equal(engine.sequences.size, 0);
});

t.test('the longest constrained answer is complete or cut', async (t) => {
  for (const [length, reason] of [
    [4, 'stop'],
    [3, 'length'],
  ] as const) {
    const { engine, sent, loop } = await setup();
    loop.take({ kind: 'sample', id: 1, variant: 1, request: { ...CONSTRAINED, max_tokens: length } });
    for (let step = 0; step < 6; step++) await engine.next();
    t.match(sent.at(-1), { event: 'done', sample: { choices: [{ finish_reason: reason }] } });
  }
});

t.test('answers go on while another one waits for its mask; one without a mask fails alone', async (t) => {
  const { engine, sent, loop, masks } = await setup();
  let release = () => {};
  masks.ready = new Promise<void>((resolve) => {
    release = resolve;
  });
  loop.take({ kind: 'sample', id: 1, variant: 1, request: CONSTRAINED });
  loop.take({ kind: 'sample', id: 2, variant: 1, request: TASK });
  const done = () => sent.some((message) => message.event === 'done' && message.id === 2);
  for (let tries = 0; !done() && tries < 500; tries++) {
    await engine.next();
    await sleep(1);
  }
  t.ok(done());
  masks.failure = Object.assign(new Error('no token'), { code: 'tokenizer_invalid' });
  loop.take({ kind: 'sample', id: 3, variant: 1, request: { ...TASK, max_tokens: 1 } });
  release();
  for (let step = 0; step < 4; step++) await engine.next();
  t.match(
    sent.find((message) => message.event === 'failed'),
    { id: 1, error: { code: 'tokenizer_invalid' } },
  );
  t.ok(sent.some((message) => message.event === 'done' && message.id === 3));
});
