import t, { type Test } from 'tap';
import type { PositionedDelta, SampleMessage, SamplePayload } from '../../contracts/index.js';
import { createLogger } from '../../platform/logging/logging.js';
import { connectRedis, disconnectRedis } from '../../platform/redis/connect.js';
import { startTestRedis } from '../../platform/testing/redis.js';
import { SAMPLE_TASK } from '../../platform/testing/sample-task.js';
import { until } from '../../platform/testing/waiting.js';
import { openJobStore } from '../../state/index.js';
import { takeSamples } from '../../state/testing/samples.js';
import { testWorker } from '../../state/testing/workers.js';
import type { SampleCall } from '../services.js';
import { SampleQueue } from './sample-queue.js';

const payload = (prompt = 'to'): SamplePayload => ({
  project: 'p',
  model: 'm',
  source: { job_id: 'job_1', checkpoint: { id: 'ckpt_1', prefix: 'jobs/job_1/checkpoints/1' } },
  request: { ...SAMPLE_TASK, prompt },
});
const call = (more: Partial<SampleCall> = {}): SampleCall => ({
  is_named: false,
  timeout_ms: 60_000,
  loading_ms: 60_000,
  signal: new AbortController().signal,
  ...more,
});
const delta = (text: string, textAt: number): PositionedDelta => ({
  index: 0,
  text,
  text_at: textAt,
  logprobs: [],
  logprobs_at: 0,
});
const usage = { prompt_tokens: 1, cached_tokens: 0, completion_tokens: 1 };
const END: SampleMessage = {
  end: { ok: true, sample: { prompt: 'p', choices: [{ index: 0, finish_reason: 'stop' }], usage } },
};
const replyOf = (text: string) => ({
  ok: true,
  sample: { prompt: 'p', choices: [{ index: 0, text, finish_reason: 'stop', logprobs: [] }], usage },
});

async function open(t: Test) {
  const redis = await startTestRedis();
  const store = await openJobStore({ url: redis.url });
  const log = createLogger({ level: 'silent', name: 'test' });
  const samples = new SampleQueue(store, log, 20);
  t.teardown(async () => {
    await samples.close();
    await store.close();
    await redis.stop();
  });
  /** Takes the next request, as worker `worker`. */
  const take = async (worker = 'w', pool = 'default') => {
    const taken: { id: string; payload: SamplePayload }[] = [];
    await until(async () => {
      taken.push(...(await takeSamples(store, { worker, pool, limit: 1 })));
      return taken.length > 0;
    });
    const [{ id, payload }] = taken as [(typeof taken)[number]];
    const tell = (...messages: SampleMessage[]) =>
      messages.reduce<Promise<unknown>>(
        (sent, message) => sent.then(() => store.sendSampleMessage(id, worker, message)),
        Promise.resolve(),
      );
    return { id, prompt: payload.request.prompt, tell };
  };
  return { redis, store, samples, take };
}

t.test('every caller gets the deltas and the answer to its own request', async (t) => {
  const { samples, take } = await open(t);
  const received = new Map<string, string>();
  const prompts = ['one', 'two', 'three'];
  const answers = prompts.map((prompt) =>
    samples.sample(
      'default',
      payload(prompt),
      call({
        onDeltas: (deltas) =>
          received.set(prompt, (received.get(prompt) ?? '') + deltas.map(({ text }) => text).join('|')),
      }),
    ),
  );
  for (const _ of prompts) {
    const { prompt, tell } = await take();
    await tell(
      { state: 'answering' },
      { deltas: [delta('af', 0)] },
      { deltas: [delta(`ter${prompt}`, 2)] },
      END,
    );
  }
  t.same(
    await Promise.all(answers),
    prompts.map((prompt) => replyOf(`after${prompt}`)),
  );
  t.same([...received].sort(), prompts.map((prompt) => [prompt, `after${prompt}`]).sort());
});

t.test(
  'an answer goes on with another worker, and other texts are an error only when some were received',
  async (t) => {
    const { store, samples, take } = await open(t);
    const play = async (second: string, more: Partial<SampleCall> = {}) => {
      const answer = samples.sample('default', payload(), call(more));
      answer.catch(() => undefined);
      const { id, tell } = await take('first');
      await tell({ state: 'answering' }, { deltas: [delta('Once', 0)] });
      await store.releaseSample(id, 'first');
      await (await take('second')).tell({ state: 'answering' }, { deltas: [delta(second, 0)] }, END);
      return answer;
    };
    const received: string[] = [];
    const onDeltas: SampleCall['onDeltas'] = (deltas) => received.push(...deltas.map(({ text }) => text));
    t.same(await play('Once upon', { onDeltas }), replyOf('Once upon'));
    t.same(received, ['Once', ' upon']);
    await t.rejects(play('Twice', { onDeltas }), { code: 'rank_lost' });
    t.same(await play('Twice'), replyOf('Twice'));
  },
);

t.test('without a worker the wait times out, and no entry is left for a later worker', async (t) => {
  const { store, samples } = await open(t);
  await t.rejects(samples.sample('empty', payload(), call({ timeout_ms: 100 })), { code: 'sample_timeout' });
  t.same(await store.countSamples('empty'), { waiting: 0, taken: 0 });
});

t.test('an answer is waited for as long as a worker has the request', async (t) => {
  const { store, samples, take } = await open(t);
  let checks = 0;
  const { findSamples } = store;
  store.findSamples = (ids) => {
    checks += 1;
    return findSamples(ids);
  };
  const asked = call();
  const answer = samples.sample('default', payload(), asked);
  const { tell } = await take();
  // A check in progress may have read the request before the worker took it.
  const before = checks;
  await until(async () => checks > before + 1);
  // The time runs out now, however long the worker took to come.
  asked.timeout_ms = 0;
  const later = (await store.now()) + 300;
  await until(async () => (await store.now()) > later);
  await tell(END);
  t.match(await answer, { ok: true });
});

t.test('a model that loads for too long', async (t) => {
  const { samples, take } = await open(t);
  const answer = samples.sample('slow', payload(), call({ loading_ms: 100 }));
  answer.catch(() => undefined);
  await (await take('w', 'slow')).tell({ state: 'loading' });
  await t.rejects(answer, { code: 'model_loading' });
});

t.test('a caller that leaves, and a request that Redis has lost', async (t) => {
  const { redis, store, samples, take } = await open(t);
  const left = new AbortController();
  const waiting = samples.sample('left', payload(), call({ signal: left.signal }));
  waiting.catch(() => undefined);
  const { id } = await take('w', 'left');
  left.abort(new Error('gone'));
  await t.rejects(waiting, { message: 'gone' });
  t.same(await store.renewSamples('left', 'w', [id], 60_000), [id], 'the worker is told');
  const lost = samples.sample('lost', payload(), call());
  lost.catch(() => undefined);
  await take('w', 'lost');
  await redis.forget();
  await t.rejects(lost, { code: 'workers_lost' });
});

t.test('pools cost no connections', async (t) => {
  const { redis, store, samples } = await open(t);
  const client = await connectRedis(redis.url, 'commands');
  t.teardown(() => disconnectRedis(client));
  const connections = async () => String(await client.client('LIST')).split('\n').length;
  const before = await connections();
  const left = new AbortController();
  const ask = (pool: string) =>
    samples.sample(pool, payload(), call({ is_named: true, signal: left.signal }));
  await t.rejects(ask('unknown'), { code: 'pool_not_found' });
  const pools = Array.from({ length: 100 }, (_, at) => `pool-${at}`);
  for (const pool of pools) await store.announceWorker({ ...testWorker(pool, 1), pool }, 60_000);
  const asked = pools.map((pool) => ask(pool).catch(() => undefined));
  await until(async () => (await store.countSamples('pool-99')).waiting === 1);
  t.equal(await connections(), before);
  left.abort(new Error('gone'));
  await Promise.all(asked);
});
