import t, { type Test } from 'tap';
import type { SampleTask } from '../../../contracts/index.js';
import type { SessionCredentials } from '../../../contracts/rank-protocol.js';
import type { ServeInput, ServeMessage } from '../../tasks/protocol.js';
import {
  ModelProcess,
  ModelProcessLost,
  type ModelProcessOptions,
  type VariantRequest,
} from './model-process.js';

const REQUEST = { prompt: 'to' } as SampleTask;
const SAMPLE = {
  prompt: 'to',
  choices: [],
  usage: { prompt_tokens: 1, cached_tokens: 0, completion_tokens: 1 },
};

const CREDENTIALS = { access_key_id: 'a' } as unknown as SessionCredentials;

const request = (variantKey: string) =>
  ({
    variant_key: variantKey,
    source: {},
    is_adapter: true,
    adapter_bytes: 1,
    withCredentials: (use) => use(CREDENTIALS),
  }) as VariantRequest;

const none = new AbortController().signal;
const turn = () => new Promise((resolve) => setImmediate(resolve));

function setup(t: Test, { silence_ms = 60_000, admit = () => undefined }: Partial<ModelProcessOptions> = {}) {
  const inputs: ServeInput[] = [];
  let receive: (message: ServeMessage) => void = () => undefined;
  let end: (error: Error) => void = () => undefined;
  const model = new ModelProcess({
    start: (signal, serving) =>
      new Promise<never>((_, reject) => {
        serving.onStart((input) => inputs.push(input));
        receive = serving.onMessage;
        end = reject;
        signal.addEventListener('abort', () => reject(signal.reason));
      }),
    silence_ms,
    admit,
    onChange: () => undefined,
  });
  t.teardown(() => model.close('the test is over'));
  return {
    model,
    inputs,
    receive: (message: ServeMessage) => receive(message),
    end: (error: Error) => end(error),
  };
}

t.test('a variant is loaded once, after the model; requests of all variants are answered', async (t) => {
  const { model, inputs, receive } = setup(t);
  const deltas: unknown[] = [];
  const use = (key: string) =>
    model.withVariant(request(key), none, (variant) =>
      model.sample({ variant, request: REQUEST }, (some) => deltas.push(...some), none),
    );
  const answer = use('a');
  const same = use('a');
  await turn();
  t.strictSame(inputs, []);
  t.notOk(model.isIdle);
  t.notOk(model.isLoaded);
  receive({ event: 'loaded', bytes: 7 });
  await turn();
  t.match(inputs, [{ kind: 'load_variant', variant: 1, is_adapter: true, credentials: CREDENTIALS }]);
  t.equal(inputs.length, 1);
  t.notOk(model.has('a'));
  receive({ event: 'variant_loaded', variant: 1, bytes: 2 });
  await turn();
  t.ok(model.has('a'));
  t.equal(model.bytes, 9);
  t.match(inputs.slice(1), [
    { kind: 'sample', id: 2, variant: 1, request: REQUEST },
    { kind: 'sample', id: 3, variant: 1 },
  ]);
  const delta = { index: 0, text: 'a', text_at: 0, logprobs: [], logprobs_at: 0 };
  receive({ event: 'deltas', id: 2, deltas: [delta] });
  receive({ event: 'deltas', id: 9, deltas: [delta] });
  for (const id of [2, 3]) receive({ event: 'done', id, sample: SAMPLE });
  t.strictSame([await answer, await same], [SAMPLE, SAMPLE]);
  t.strictSame(deltas, [delta]);
  t.ok(model.isIdle);
});

t.test('a variant that cannot be loaded fails its requests, and may be tried again', async (t) => {
  const { model, inputs, receive } = setup(t);
  receive({ event: 'loaded', bytes: 7 });
  const refused = model.withVariant(request('a'), none, async () => 0);
  await turn();
  receive({ event: 'variant_failed', variant: 1, error: { code: 'tokenizer_invalid', message: 'none' } });
  await t.rejects(refused, { code: 'tokenizer_invalid' });
  const again = model.withVariant(request('a'), none, async (number) => number);
  await turn();
  t.match(inputs.at(-1), { kind: 'load_variant', variant: 2 });
  receive({ event: 'variant_loaded', variant: 2, bytes: 2 });
  t.equal(await again, 2);
});

t.test('unused variants are unloaded, the least recently used first', async (t) => {
  const { model, inputs, receive } = setup(t);
  receive({ event: 'loaded', bytes: 7 });
  const load = async (key: string, use = async () => undefined) => {
    const loaded = model.withVariant(request(key), none, use);
    await turn();
    const last = inputs.at(-1);
    if (last?.kind === 'load_variant') receive({ event: 'variant_loaded', variant: last.variant, bytes: 1 });
    return loaded;
  };
  let leave: () => void = () => undefined;
  const busy = load('busy', () => new Promise((resolve) => (leave = () => resolve(undefined))));
  await turn();
  for (let i = 0; i < 63; i += 1) await load(`v${i}`);
  await load('v0');
  t.notOk(inputs.some(({ kind }) => kind === 'unload_variant'));
  const more = model.withVariant(request('more'), none, async () => undefined);
  await turn();
  t.match(
    inputs.filter(({ kind }) => kind === 'unload_variant'),
    [{ kind: 'unload_variant', variant: 3 }],
    'v1: busy is used, and v0 was used again',
  );
  receive({ event: 'variant_loaded', variant: 65, bytes: 1 });
  await more;
  leave();
  await busy;
  t.equal(model.bytes, 7 + 65, 'the memory of an unloaded variant counts until it is released');
  receive({ event: 'variant_unloaded', variant: 3 });
  t.equal(model.bytes, 7 + 64);
});

t.test('an error of the model is that of its requests; a lost process can be replaced', async (t) => {
  const { model, receive, end } = setup(t);
  receive({ event: 'loaded', bytes: 7 });
  const refused = model.sample({ variant: 1, request: REQUEST }, () => undefined, none);
  const lost = model.sample({ variant: 1, request: REQUEST }, () => undefined, none);
  const loading = model.withVariant(request('a'), none, async () => 0);
  await turn();
  receive({ event: 'failed', id: 1, error: { code: 'prompt_too_long', message: 'too long' } });
  await t.rejects(refused, { code: 'prompt_too_long' });
  end(new Error('killed'));
  await t.rejects(lost, ModelProcessLost);
  await t.rejects(loading, ModelProcessLost);
  await model.ended;
  const late = model.sample({ variant: 1, request: REQUEST }, () => undefined, none);
  await t.rejects(late, ModelProcessLost, 'a process that has ended already');
});

t.test('a model that cannot be loaded', async (t) => {
  const { model, end } = setup(t);
  const answer = model.withVariant(request('a'), none, async () => 0);
  const error = Object.assign(new Error('damaged'), { code: 'shard_corrupt' });
  end(error);
  await t.rejects(model.loaded, { code: 'shard_corrupt' });
  await t.rejects(answer, { code: 'shard_corrupt' });
});

t.test('an aborted request is cancelled in the process', async (t) => {
  const { model, inputs, receive } = setup(t);
  receive({ event: 'loaded', bytes: 7 });
  const left = new AbortController();
  const answer = model.sample({ variant: 1, request: REQUEST }, () => undefined, left.signal);
  await turn();
  left.abort(new Error('nobody waits'));
  await t.rejects(answer, { message: 'nobody waits' });
  t.match(inputs.at(-1), { kind: 'cancel', id: 1 });
  t.ok(model.isIdle);
  await model.close('unused');
});

t.test('a silent process is killed, and its requests can go to another one', async (t) => {
  const { model, receive } = setup(t, { silence_ms: 40 });
  receive({ event: 'alive' });
  const loading = model.withVariant(request('a'), none, async () => 0);
  await t.rejects(loading, ModelProcessLost, 'also while it loads');
  t.match(await loading.catch((error) => error), { cause: /silent for \d+ ms/ });
  await model.ended;
  const answering = setup(t, { silence_ms: 40 });
  answering.receive({ event: 'loaded', bytes: 7 });
  const answer = answering.model.sample({ variant: 1, request: REQUEST }, () => undefined, none);
  await t.rejects(answer, ModelProcessLost);
});

t.test('memory of adapters is counted from their admission on', async (t) => {
  const refusal = Object.assign(new Error('no room'), { code: 'model_memory_in_use' });
  const seen: number[] = [];
  const { model, inputs, receive } = setup(t, {
    admit: (bytes) => {
      seen.push(model.bytes);
      if (model.bytes + bytes > 9) throw refusal;
    },
  });
  receive({ event: 'allocated', bytes: 7 });
  t.equal(model.bytes, 7, 'also before the weights are loaded');
  t.notOk(model.isLoaded);
  receive({ event: 'loaded', bytes: 7 });
  const use = (key: string) => model.withVariant(request(key), none, async () => key);
  const [first, second, third] = [use('a'), use('b'), use('c')];
  await t.rejects(third, refusal);
  t.strictSame(seen, [7, 8, 9]);
  t.equal(inputs.length, 2, 'a refused variant is not sent to the process');
  receive({
    event: 'variant_failed',
    variant: 1,
    error: { code: 'model_memory_in_use', message: 'no memory' },
  });
  await t.rejects(first, { code: 'model_memory_in_use' });
  t.equal(model.bytes, 8);
  receive({ event: 'variant_loaded', variant: 2, bytes: 2 });
  await second;
  t.equal(model.bytes, 9, 'as many as the process has taken');
  const released = model.releaseVariant();
  t.match(inputs.at(-1), { kind: 'unload_variant', variant: 2 });
  receive({ event: 'variant_unloaded', variant: 2 });
  t.ok(await released);
  t.equal(model.bytes, 7);
  t.notOk(await model.releaseVariant(), 'nothing is left');
});

t.test('no wait outlasts the process, or the caller', async (t) => {
  const { model, receive, end } = setup(t);
  const left = new AbortController();
  const waiting = model.withVariant(request('a'), left.signal, async () => 0);
  const shared = model.withVariant(request('a'), none, async () => 0);
  left.abort(new Error('nobody waits'));
  await t.rejects(waiting, /nobody waits/, 'while the model loads');
  receive({ event: 'loaded', bytes: 7 });
  receive({ event: 'variant_loaded', variant: 1, bytes: 2 });
  await turn();
  receive({ event: 'variant_loaded', variant: 1, bytes: 2 });
  t.equal(await shared, 0, 'others wait on');
  const credentials = model.withVariant(
    { ...request('b'), withCredentials: () => new Promise(() => undefined) },
    none,
    async () => 0,
  );
  await turn();
  const released = model.releaseVariant();
  end(new Error('killed'));
  await t.rejects(credentials, ModelProcessLost, 'while credentials are requested');
  t.ok(await released, 'while a variant is unloaded');
  await model.ended;
  await t.rejects(
    model.withVariant(request('c'), none, async () => 0),
    ModelProcessLost,
    'after the end',
  );
});
