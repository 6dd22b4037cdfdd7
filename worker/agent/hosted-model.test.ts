import t from 'tap';
import type { SampleTask } from '../../contracts/index.js';
import type { HostInput, HostMessage } from '../tasks/protocol.js';
import { HostedModel, HostLost } from './hosted-model.js';

const REQUEST = { prompt: 'to' } as SampleTask;
const SAMPLE = {
  prompt: 'to',
  choices: [],
  usage: { prompt_tokens: 1, cached_tokens: 0, completion_tokens: 1 },
};

function setup() {
  const inputs: HostInput[] = [];
  let tell: (message: HostMessage) => void = () => undefined;
  let end: (error: Error) => void = () => undefined;
  const model = new HostedModel(
    (signal, host) =>
      new Promise<never>((_, reject) => {
        host.onStart((input) => inputs.push(input));
        tell = host.onMessage;
        end = reject;
        signal.addEventListener('abort', () => reject(signal.reason));
      }),
  );
  const none = new AbortController().signal;
  return {
    model,
    inputs,
    none,
    tell: (message: HostMessage) => tell(message),
    end: (error: Error) => end(error),
  };
}

t.test('requests wait until the model is loaded', async (t) => {
  const { model, inputs, none, tell } = setup();
  const deltas: unknown[] = [];
  const answer = model.answer(REQUEST, (some) => deltas.push(...some), none);
  await new Promise((resolve) => setImmediate(resolve));
  t.strictSame(inputs, []);
  t.notOk(model.is_idle);
  tell({ host: 'loaded', bytes: 7 });
  t.equal(await model.loaded, 7);
  await new Promise((resolve) => setImmediate(resolve));
  t.match(inputs, [{ kind: 'answer', id: 1, request: REQUEST }]);
  const delta = { index: 0, text: 'a', text_at: 0, logprobs: [], logprobs_at: 0 };
  tell({ host: 'deltas', id: 1, deltas: [delta] });
  tell({ host: 'deltas', id: 9, deltas: [delta] });
  tell({ host: 'done', id: 1, sample: SAMPLE });
  t.strictSame(await answer, SAMPLE);
  t.strictSame(deltas, [delta]);
  t.ok(model.is_idle);
});

t.test('an error of the model is that of its requests; a lost host can be replaced', async (t) => {
  const { model, none, tell, end } = setup();
  tell({ host: 'loaded', bytes: 7 });
  const refused = model.answer(REQUEST, () => undefined, none);
  const lost = model.answer(REQUEST, () => undefined, none);
  await new Promise((resolve) => setImmediate(resolve));
  tell({ host: 'failed', id: 1, error: { code: 'prompt_too_long', message: 'too long' } });
  await t.rejects(refused, { code: 'prompt_too_long' });
  end(new Error('killed'));
  await t.rejects(lost, HostLost);
  await model.ended;
});

t.test('a model that cannot be loaded', async (t) => {
  const { model, none, end } = setup();
  const answer = model.answer(REQUEST, () => undefined, none);
  const error = Object.assign(new Error('damaged'), { code: 'shard_corrupt' });
  end(error);
  await t.rejects(model.loaded, { code: 'shard_corrupt' });
  await t.rejects(answer);
});

t.test('a request that is left is cancelled in the host', async (t) => {
  const { model, inputs, tell } = setup();
  tell({ host: 'loaded', bytes: 7 });
  const left = new AbortController();
  const answer = model.answer(REQUEST, () => undefined, left.signal);
  await new Promise((resolve) => setImmediate(resolve));
  left.abort(new Error('nobody waits'));
  await t.rejects(answer, { message: 'nobody waits' });
  t.match(inputs.at(-1), { kind: 'cancel', id: 1 });
  t.ok(model.is_idle);
  await model.close('unused');
});
