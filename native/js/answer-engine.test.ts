import t from 'tap';
import type { AdapterParams } from '../../contracts/architecture.js';
import { AnswerEngine, type DrawnToken, GREEDY, paramTable, type SequenceOptions } from './index.js';
import { tinyConfig, tinyTokens } from './testing.js';

const tokens = tinyTokens();
t.teardown(() => tokens.remove());
const { model } = tinyConfig(tokens.path);
const PLAIN: SequenceOptions = {
  ...GREEDY,
  max_tokens: 8,
  temperature: 1,
};
const create = (threads = 1) =>
  AnswerEngine.create(model, {
    threads,
    dtype: 'bf16',
    device: 'cpu',
    cache_tokens: 256,
    max_length: 256,
    max_sequences: 4,
  });

function setParams(engine: AnswerEngine): void {
  for (const row of paramTable(model)) {
    const values = Float32Array.from({ length: row.numel }, (_, i) => Math.sin(i * 0.37 + row.index) * 0.3);
    engine.setParam(row.index, 0, 'fp32', new Uint8Array(values.buffer));
  }
}

/** Steps until `count` sequences have ended. */
async function answers(engine: AnswerEngine, count: number): Promise<Map<number, DrawnToken[]>> {
  const drawn = new Map<number, DrawnToken[]>();
  for (let ended = 0; ended < count; ) {
    for (const token of await engine.step()) {
      drawn.set(token.id, [...(drawn.get(token.id) ?? []), token]);
      if (token.finish !== null) ended += 1;
    }
  }
  return drawn;
}

t.test('an answer is a function of prompt, options and seed, whatever other sequences run', async (t) => {
  const engine = create();
  setParams(engine);
  engine.add(1, [1, 2, 3], { ...PLAIN, seed: 3, top_logprobs: 2 });
  const alone = (await answers(engine, 1)).get(1)!.map(({ id: _, cached_tokens: __, ...rest }) => rest);
  t.equal(alone.length, 8);
  t.equal(alone.at(-1)!.finish, 'length');
  t.ok(
    alone.every(
      ({ logprob, top: [first, second] }) => first!.logprob >= second!.logprob && first!.logprob >= logprob,
    ),
  );
  const other = create(2);
  setParams(other);
  for (let id = 0; id < 6; id++) other.add(id, [1, 2, 3], { ...PLAIN, seed: id, top_logprobs: 2 });
  const many = await answers(other, 6);
  t.same(
    many.get(3)!.map(({ id: _, cached_tokens: __, ...rest }) => rest),
    alone,
  );
  const texts = new Set([...many.values()].map((drawn) => drawn.map(({ token }) => token).join()));
  t.equal(texts.size, 6, 'other seeds, other texts');
});

t.test('an end token ends the sequence, and tokens beyond num_tokens are not drawn', async (t) => {
  const engine = create();
  setParams(engine);
  engine.add(1, [1, 2, 3], PLAIN);
  const drawn = (await answers(engine, 1)).get(1)!;
  const end = drawn[5]!.token;
  engine.add(2, [1, 2, 3], { ...PLAIN, end_tokens: [end] });
  engine.add(3, [1, 2, 3], { ...PLAIN, num_tokens: 3 });
  engine.add(4, [1, 2, 3], { ...PLAIN, temperature: 0 });
  engine.add(5, [1, 2, 3], { ...PLAIN, top_p: 1e-9 });
  const found = await answers(engine, 4);
  const first = drawn.findIndex(({ token }) => token === end);
  t.equal(found.get(2)!.length, first + 1);
  t.equal(found.get(2)!.at(-1)!.finish, 'end');
  t.ok(found.get(3)!.every(({ token }) => token < 3));
  t.same(
    found.get(5)!.map(({ token }) => token),
    found.get(4)!.map(({ token }) => token),
  );
});

t.test('sequences of the model and of adapters over it share steps', async (t) => {
  const adapter: AdapterParams = {
    type: 'lora',
    rank: 3,
    scale: 2,
    dropout: 0,
    init: 'kaiming_uniform',
    target_modules: ['q_proj', 'down_proj'],
    modules_to_save: [],
  };
  const values = paramTable({ ...model, adapter })
    .filter(({ base }) => !base)
    .map(({ numel, index }) => {
      const floats = Float32Array.from({ length: numel }, (_, i) => Math.cos(i * 0.37 + index));
      return new Uint8Array(floats.buffer);
    });
  const engine = create();
  setParams(engine);
  const bytes = values.reduce((sum, { length }) => sum + length, 0);
  const added = await engine.addAdapter(adapter, values);
  t.equal(added.adapter, 1);
  t.ok(added.num_bytes > bytes, 'its parameters, and room for its rows');
  const options = (number: number) => ({ ...PLAIN, temperature: 0, adapter: number });
  engine.add(1, [1, 2, 3], options(0));
  engine.add(2, [1, 2, 3], options(1));
  const both = await answers(engine, 2);
  const numbers = (id: number) => both.get(id)!.map(({ token, logprob }) => [token, logprob]);
  t.notSame(numbers(1), numbers(2));
  engine.add(3, [1, 2, 3], options(0));
  const refused = [
    engine.addAdapter({ ...adapter, type: 'dora' }, values),
    engine.addAdapter(adapter, values.slice(1)),
  ];
  const going = answers(engine, 1);
  await engine.removeAdapter(1);
  t.throws(() => engine.add(4, [1], options(1)), { code: 'invalid_argument' });
  await t.rejects(refused[0] as Promise<unknown>, { code: 'adapter_not_servable' });
  await t.rejects(refused[1] as Promise<unknown>, { code: 'invalid_argument' });
  t.same(
    (await going).get(3)!.map(({ token }) => token),
    both.get(1)!.map(({ token }) => token),
    'others go on',
  );
});

t.test('calls that cannot be are refused; a step that runs is not disturbed', async (t) => {
  const engine = create();
  t.equal(engine.maxLength, 64);
  t.throws(() => engine.add(1, Array(64).fill(1), PLAIN), { code: 'prompt_too_long' });
  t.throws(() => engine.add(1, [101], PLAIN), { code: 'token_out_of_vocab' });
  t.throws(() => engine.add(1, [], PLAIN), { code: 'invalid_argument' });
  t.throws(() => engine.add(1, [1], { ...PLAIN, temperature: -1 }), { code: 'invalid_argument' });
  await t.rejects(engine.step(), { code: 'invalid_argument' }, 'parameters are missing');
  setParams(engine);
  t.same(await engine.step(), []);
  engine.add(1, [1, 2, 3], PLAIN);
  engine.add(2, [1, 2], PLAIN);
  const running = engine.step();
  await null;
  t.throws(() => engine.setParam(0, 0, 'fp32', new Uint8Array(101 * 48 * 4)), { code: 'busy' });
  t.same(
    (await running).map(({ id }) => id),
    [1, 2],
  );
  engine.cancel(2);
  engine.cancel(77);
  t.same(
    (await engine.step()).map(({ id }) => id),
    [1],
    'a cancelled text is gone',
  );
  engine.close();
  t.throws(() => engine.add(3, [1], PLAIN), { code: 'closed' });
});

t.test('penalties and biases change what is drawn, and not the log-probabilities', async (t) => {
  const engine = create();
  setParams(engine);
  const numTokens = 40;
  const options: SequenceOptions = {
    ...PLAIN,
    temperature: 0,
    max_tokens: 16,
    num_tokens: numTokens,
    presence_penalty: 0.4,
    frequency_penalty: 0.3,
    logit_bias: [
      { token: 7, bias: 1.5 },
      { token: 9, bias: -100 },
    ],
  };
  engine.add(1, [1, 2, 3], options);
  const drawn = (await answers(engine, 1)).get(1)!.map(({ token }) => token);
  // The reference adds to all log-probabilities of the next token, in float64.
  const expected: number[] = [];
  while (expected.length < drawn.length) {
    const { num_tokens, ...rest } = options;
    const plain = { ...PLAIN, temperature: 0, num_tokens, max_tokens: 1, top_logprobs: num_tokens };
    const id = 2 + expected.length;
    engine.add(id, [1, 2, 3, ...expected], plain);
    const [next] = (await answers(engine, 1)).get(id)!;
    t.equal(next!.top.length, num_tokens);
    const score = ({ token, logprob }: { token: number; logprob: number }) => {
      const count = expected.filter((other) => other === token).length;
      const bias = rest.logit_bias.find((other) => other.token === token)?.bias ?? 0;
      return logprob + bias - count * rest.frequency_penalty - (count > 0 ? rest.presence_penalty : 0);
    };
    expected.push(next!.top.toSorted((a, b) => score(b) - score(a))[0]!.token);
  }
  t.same(drawn, expected);
  t.ok(new Set(drawn).size > 3, 'the penalties change the tokens');
  engine.add(50, [1, 2, 3], { ...PLAIN, temperature: 0, max_tokens: 16, num_tokens: numTokens });
  const plain = (await answers(engine, 1)).get(50)!;
  engine.add(51, [1, 2, 3], {
    ...options,
    presence_penalty: 0,
    frequency_penalty: 0,
    logit_bias: plain.slice(0, 1).map(({ token }) => ({ token, bias: 5 })),
    max_tokens: 1,
  });
  t.equal((await answers(engine, 1)).get(51)![0]!.logprob, plain[0]!.logprob);
  for (const token of [-1, model.vocab_size])
    t.throws(() => engine.add(52, [1], { ...PLAIN, logit_bias: [{ token, bias: 1 }] }), {
      code: 'token_out_of_vocab',
    });
});

t.test('a constrained sequence waits for the tokens that it may draw, and others go on', async (t) => {
  const engine = create();
  setParams(engine);
  const maskOf = (...allowed: number[]) => {
    const mask = new Uint32Array(2);
    for (const token of allowed) mask[token >> 5]! |= 1 << (token & 31);
    return mask;
  };
  const allowed = [[5], [6, 40], [41], [0, 1, 2, 3]];
  const draw = async (id: number, others: number) => {
    engine.add(id, [1, 2, 3], { ...PLAIN, max_tokens: allowed.length, is_constrained: true });
    for (let other = 1; other <= others; other++) engine.add(id + other, [1, 2, other], PLAIN);
    const ended = await answers(engine, others);
    t.notOk(ended.has(id), 'without a mask it draws nothing');
    const drawn: DrawnToken[] = [];
    for (const tokens of allowed) {
      t.same(await engine.step(), []);
      engine.allow(id, maskOf(...tokens));
      while (drawn.length === 0 || drawn.at(-1)!.finish === null) {
        const step = await engine.step();
        drawn.push(...step);
        if (step.length > 0) break;
      }
      t.ok(tokens.includes(drawn.at(-1)!.token));
    }
    return drawn.map(({ token, logprob }) => [token, logprob]);
  };
  const alone = await draw(1, 0);
  t.same(await draw(100, 5), alone);
  t.throws(() => engine.allow(1, new Uint32Array(2)), { code: 'invalid_argument' });
});
