/** Checkpoints answer the prompts of their job's document, through the forwarder of the API. */
import t, { type Test } from 'tap';
import {
  type Checkpoint,
  type GeneratedText,
  type JobEvent,
  type SamplePayload,
  ZerofleetError,
} from '../../contracts/index.js';
import { checkpoint } from '../../control/testing/recovery.js';
import { createLogger } from '../../platform/logging/logging.js';
import { AddressPolicy } from '../../platform/outgoing/addresses.js';
import { Forwarder } from '../integrations/forwarder.js';
import { claimed, eventOf } from '../integrations/testing/forwarding.js';
import { Trackers } from '../integrations/trackers.js';
import type { SamplePort } from '../services.js';
import { startTestStack, type TestStack } from '../testing/stack.js';
import { checkpointOf } from '../testing/training.js';

const PROMPTS = [{ prompt: 'Once' }, { prompt: 'Twice' }];
const TIMING = { poll_ms: 10, idle_ms: 10, first_retry_ms: 10, max_retry_ms: 50 };

async function setUp(t: Test) {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  return stack;
}

/** Forwards like an API process. */
function startForwarding(t: Test, { store }: TestStack, samples: SamplePort) {
  const trackers = new Trackers({ mlflow: new Map(), wandb: new Map() }, new AddressPolicy([]));
  const log = createLogger({ level: 'silent', name: 'test' });
  const forwarder = new Forwarder({ store, trackers, samples, log, timing: TIMING });
  t.teardown(() => forwarder.close());
  return forwarder;
}

/** Workers whose answers name the checkpoint and the prompt. */
function workers(texts: (payload: SamplePayload) => string) {
  const asked: SamplePayload[] = [];
  const sample: SamplePort['sample'] = async (_, payload) => {
    asked.push(payload);
    const choice = { index: 0, text: texts(payload), finish_reason: 'length' as const, logprobs: [] };
    const text: GeneratedText = {
      prompt: payload.request.prompt ?? '',
      choices: [choice],
      usage: { prompt_tokens: 1, cached_tokens: 0, completion_tokens: 1 },
    };
    return { ok: true, sample: text };
  };
  return { asked, port: { sample } };
}

async function runningJob(stack: TestStack, steps: number) {
  const samples = { prompts: PROMPTS, max_tokens: 5, seed: 7 };
  const { id } = await stack.createJob({ train: { steps, sequence_length: 16 }, checkpoint: { samples } });
  const { execution, train } = await claimed(stack.store, id);
  const commit = async (step: number): Promise<Checkpoint> => {
    const checkpoint = checkpointOf(id, step);
    await train(step, step);
    await stack.store.commitCheckpoint(id, execution, checkpoint);
    return checkpoint;
  };
  const finish = () => stack.store.finishJob(id, execution, 'succeeded', { reason: 'completed' });
  return { id, execution, commit, finish };
}

async function eventsOf({ store }: TestStack, id: string): Promise<JobEvent[]> {
  const entries = await store.readStream(id, null, 1000, ['event']);
  return entries.filter((entry) => entry.kind === 'event' && entry.type.startsWith('samples.')) as JobEvent[];
}

t.test('each checkpoint answers once, also after the end of the job and in another process', async (t) => {
  const stack = await setUp(t);
  const { asked, port } = workers(({ model, request }) => `${request.prompt} by ${model}`);
  const { id, commit, finish } = await runningJob(stack, 100);
  const first = await commit(10);
  const forwarder = startForwarding(t, stack, port);
  t.match(await eventOf(stack.store, id, 'samples.answered'), {
    data: { step: 10, checkpoint_id: first.id, answers: [`Once by ${first.id}`, `Twice by ${first.id}`] },
  });
  t.match(asked[0], {
    project: 'default',
    source: { job_id: id, checkpoint: { id: first.id, prefix: first.prefix } },
    request: { prompt: 'Once', max_tokens: 5, seed: 7, temperature: 0, n: 1 },
  });
  await forwarder.close();
  const second = await commit(20);
  await finish();
  startForwarding(t, stack, port);
  await stepsAnswered(t, stack, id, [10, 20]);
  t.match((await eventsOf(stack, id)).at(-1), { data: { checkpoint_id: second.id } });
  t.equal(asked.length, 4, 'no checkpoint was asked twice');
});

t.test('after a loss of Redis the checkpoints that remain answer again', async (t) => {
  const stack = await setUp(t);
  const { asked, port } = workers(({ model }) => `by ${model}`);
  const { id, execution } = await runningJob(stack, 100);
  const job = (await stack.store.getJob(id))!;
  const first = await checkpoint(stack, job, execution, 10);
  startForwarding(t, stack, port);
  await stepsAnswered(t, stack, id, [10]);
  const [lost] = await eventsOf(stack, id);
  await stack.loseRedis();
  const left = await eventsOf(stack, id);
  t.notOk(
    left.some(({ position }) => position === lost?.position),
    'its events are lost; the checkpoint may have answered again already',
  );
  const again = await claimed(stack.store, id);
  const second = await checkpoint(stack, job, again.execution, 20);
  await again.train(20, 20);
  await stepsAnswered(t, stack, id, [10, 20]);
  t.strictSame(
    asked.map(({ model }) => model),
    [first, first, first, first, second, second].map((one) => one.id),
  );
});

t.test('of a long training some checkpoints answer, and the last one', async (t) => {
  const stack = await setUp(t);
  const { port } = workers(() => 'x');
  const { id, commit, finish } = await runningJob(stack, 1000);
  for (const step of [1, 4, 5, 8, 11, 12]) await commit(step);
  await finish();
  startForwarding(t, stack, port);
  await stepsAnswered(t, stack, id, [5, 11, 12]);
});

t.test('an answer has a bound, and no half of a character', async (t) => {
  const stack = await setUp(t);
  const { port } = workers(() => `${'x'.repeat(1_999)}🚀`);
  const { id, commit } = await runningJob(stack, 10);
  await commit(10);
  startForwarding(t, stack, port);
  const { data } = await eventOf(stack.store, id, 'samples.answered');
  t.strictSame(data.answers, ['x'.repeat(1_999), 'x'.repeat(1_999)]);
});

t.test(
  'a failure that may pass is tried again; another one is told, and the next checkpoint answers',
  async (t) => {
    const stack = await setUp(t);
    const { port } = workers(() => 'x');
    const { id, commit } = await runningJob(stack, 100);
    const bad = await commit(10);
    await commit(20);
    let failures = 0;
    const sample: SamplePort['sample'] = async (pool, payload, call) => {
      if (payload.model === bad.id && failures++ < 2) throw new ZerofleetError('sample_timeout', 'no worker');
      if (payload.model === bad.id)
        return { ok: false, error: { code: 'prompt_too_long', message: 'too many tokens' } };
      return port.sample(pool, payload, call);
    };
    startForwarding(t, stack, { sample });
    t.match(await eventOf(stack.store, id, 'samples.answered'), { data: { step: 20 } });
    t.match(
      (await eventsOf(stack, id)).map(({ type, data }) => ({ type, ...data })),
      [
        { type: 'samples.failed', step: 10, error: 'prompt_too_long', message: 'too many tokens' },
        { type: 'samples.answered', step: 20 },
      ],
    );
    t.ok(failures >= 3);
  },
);

/** Waits until as many checkpoints have answered, and compares their steps. */
async function stepsAnswered(t: Test, stack: TestStack, id: string, steps: readonly number[]) {
  for (;;) {
    const found = (await eventsOf(stack, id)).map(({ data }) => data.step);
    if (found.length >= steps.length) return void t.strictSame(found, steps);
    await stack.store.waitStream(id, null, { timeoutMs: 10 });
  }
}
