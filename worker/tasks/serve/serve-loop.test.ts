import { once } from 'node:events';
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises';
import t from 'tap';
import { type SampleTask, ZerofleetError } from '../../../contracts/index.js';
import { BytesTokenizer } from '../../../formats/encoding/bytes-tokenizer.js';
import { SAMPLE_TASK } from '../../../platform/testing/sample-task.js';
import type { CoreEngine, DrawnToken, SequenceOptions } from '../../shared/native/adapter.js';
import type { ServeInput, ServeMessage } from '../protocol.js';
import type { MaskRequest, NextTokens } from './mask-thread-main.js';
import { buildPrompt } from './prompt.js';
import { ServeLoop } from './serve-loop.js';

const TASK: SampleTask = { ...SAMPLE_TASK, max_tokens: 3, seed: 5 };
/** Its prompt is not made until it is cancelled. */
const SLOW = { ...TASK, prompt: 'slow' };
const RULES = { chat_template: null, template_date: null, max_length: 1000 };

/** Repeats the letter that belongs to the seed; a step is taken when `next` is called. */
class FakeEngine implements CoreEngine {
  readonly maxLength = 64;
  readonly numBytes = 1;
  readonly sequences = new Map<number, { options: SequenceOptions; left: number }>();
  readonly cancelled: number[] = [];
  failure: Error | null = null;
  /** Masks by sequence. */
  readonly masks = new Map<number, Uint32Array>();
  private waiting: (() => void)[] = [];

  readonly removed: number[] = [];

  setParam(): void {}
  async addAdapter() {
    return { adapter: 1, num_bytes: 1 };
  }
  async removeAdapter(adapter: number): Promise<void> {
    this.removed.push(adapter);
  }
  close(): void {}
  allow(id: number, mask: Uint32Array): void {
    this.masks.set(id, mask);
  }

  add(id: number, prompt: readonly number[], options: SequenceOptions): void {
    if (prompt.length >= this.maxLength)
      throw Object.assign(new Error('too long'), { code: 'prompt_too_long' });
    this.sequences.set(id, { options, left: options.max_tokens });
  }

  cancel(id: number): void {
    this.cancelled.push(id);
    this.sequences.delete(id);
  }

  async step(): Promise<DrawnToken[]> {
    await new Promise<void>((resolve) => this.waiting.push(resolve));
    if (this.failure !== null) throw this.failure;
    const ready = [...this.sequences].filter(
      ([id, { options }]) => !options.is_constrained || this.masks.delete(id),
    );
    return ready.map(([id, sequence]) => {
      sequence.left -= 1;
      const finish = sequence.left === 0 ? 'length' : null;
      if (finish !== null) this.sequences.delete(id);
      return { id, token: 97 + sequence.options.seed, logprob: -1, top: [], finish, cached_tokens: 2 };
    });
  }

  /** Lets the loop take a step, if it waits for one. */
  async next(): Promise<void> {
    for (let tries = 0; this.waiting.length === 0 && tries < 20; tries++) await turn();
    this.waiting.shift()?.();
    await turn();
  }
}

/** Each constrained answer is complete after four tokens. */
class FakeMasks {
  readonly requests: MaskRequest[] = [];
  failure: Error | null = null;
  /** Resolves when masks may come. */
  ready: Promise<unknown> = Promise.resolve();

  async next(request: MaskRequest): Promise<NextTokens> {
    this.requests.push(request);
    await this.ready;
    if (this.failure !== null) throw this.failure;
    return { mask: request.tokens.length < 4 ? Uint32Array.of(request.tokens.length + 1) : null };
  }

  async close(): Promise<void> {}
}

type VariantInput = Extract<ServeInput, { kind: 'load_variant' }>;

const variantInput = (variant: number) =>
  ({ kind: 'load_variant', variant, is_adapter: true, credentials: null }) as VariantInput;

/** A serve loop with variant 1, the model alone. */
async function setup() {
  const engine = new FakeEngine();
  const closed: number[] = [];
  const sent: ServeMessage[] = [];
  const load = async ({ variant }: VariantInput) => {
    if (variant === 9) throw new ZerofleetError('tokenizer_invalid', 'no tokenizer');
    const tokenizer = new BytesTokenizer();
    const prompts = {
      build: async (request: SampleTask, signal: AbortSignal) => {
        if (request.prompt === 'slow') await once(signal, 'abort');
        return buildPrompt(tokenizer, request, RULES);
      },
      close: async () => void closed.push(variant),
    };
    return { prompts, masks, decoder: tokenizer, num_tokens: 256, adapter: variant - 1, bytes: 7 };
  };
  const lost: unknown[] = [];
  const masks = new FakeMasks();
  const loop = new ServeLoop(engine, load, {
    send: (message) => sent.push(message),
    onDeviceLost: (error) => lost.push(error),
  });
  loop.take(variantInput(1));
  await turn();
  return { engine, sent, lost, loop, closed, masks };
}

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
