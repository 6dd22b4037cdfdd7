import { join } from 'node:path';
import t from 'tap';
import { collect, type Zerofleet } from '../../clients/typescript/index.js';
import type { Job } from '../../contracts/index.js';
import { sampleText as continueText } from '../../ops/sample/sample-text.js';
import { rankProcesses } from '../support/processes.js';
import { largerSteps, smallJob } from '../support/specs.js';
import { sampleText, startStack, type TestStack } from '../support/stack.js';

const STEPS = 60;
const MAX_TRIES = 10;

let stack: TestStack;
let client: Zerofleet;
let dataset: string;
/** Result of the uninterrupted run. */
let expected: Result;

/** Digest of a job's final state and its exported files: equal under any interruptions. */
interface Result {
  state_digest: string | undefined;
  files: { name: string; sha256: string }[] | undefined;
}

const resultOf = ({ export: exported }: Job): Result => ({
  state_digest: exported?.state_digest,
  files: exported?.files.map(({ name, sha256 }) => ({ name, sha256 })),
});

const ended = () => false;

async function finish(job: Job): Promise<Job> {
  const final = await client.jobs.until(job.id, ended);
  t.equal(final.state, 'succeeded', JSON.stringify(final.failure));
  return final;
}

/**
 * Waits until the job has completed `step` steps, at least one of them since its resumption, and runs on `ranks` ranks.
 * Then pauses the job and returns it. On a busy machine the pause before may have come later than requested.
 */
async function pauseAt(id: string, step: number, ranks: number): Promise<Job> {
  const saved = (await client.jobs.get(id)).latest_checkpoint?.step ?? 0;
  const at = Math.max(step, saved + 1);
  const isThere = ({ world_size, progress }: Job) => world_size === ranks && progress.step >= at;
  await client.jobs.until(id, isThere, { interval_ms: 20 });
  await client.jobs.pause(id);
  return client.jobs.until(id, (job) => job.state === 'paused', { interval_ms: 20 });
}

t.before(async () => {
  stack = await startStack(t);
  client = stack.client;
  dataset = (await client.datasets.create('openapi', sampleText())).id;
  const job = await finish(
    await client.jobs.create(smallJob({ name: 'uninterrupted', dataset, steps: STEPS, ranks: 1 })),
  );
  expected = resultOf(job);
});

t.test('the uninterrupted job reports its progress', async (t) => {
  const [job] = await collect(client.jobs.list());
  t.match(expected.state_digest, /^[0-9a-f]{32}$/);
  t.ok(expected.files?.some(({ name }) => name === 'model.safetensors'));
  t.equal(job?.progress.step, STEPS);
  t.equal(job?.progress.percent, 100);
  t.equal(job?.latest_checkpoint?.step, STEPS);
  t.equal(job?.latest_checkpoint?.state_digest, expected.state_digest);
  const metrics = await collect(client.jobs.metrics(job?.id ?? ''));
  t.same(
    metrics.map(({ step }) => step),
    Array.from({ length: STEPS }, (_, index) => index + 1),
  );
  t.ok((metrics.at(-1)?.loss ?? 9) < (metrics[0]?.loss ?? 0), 'the loss falls');
  const [estimate] = (
    await client.estimate(smallJob({ name: 'uninterrupted', dataset, steps: STEPS, ranks: 1 }), [1])
  ).data;
  const least = estimate?.bytes.total ?? Number.POSITIVE_INFINITY;
  for (const { memory_bytes } of metrics)
    t.ok(memory_bytes >= least && memory_bytes < least + 2 ** 30, `${memory_bytes} of ${least} and Node.js`);
  const uses = metrics.flatMap(({ system }) => (system ? [system] : []));
  t.ok(uses.length > 0, 'the use of the rank was measured');
  for (const { cpu, memory_bytes, sent_bytes } of uses) {
    t.ok(cpu.length === 1 && (cpu[0] ?? 0) > 0, `${cpu} busy cores`);
    t.ok((memory_bytes[0] ?? 0) > 2 ** 20);
    t.same(sent_bytes, [0], 'one rank has nobody to send to');
  }
});

t.test('its last checkpoint continues a text like the exported model', async (t) => {
  const [job] = await collect(client.jobs.list());
  const request = { prompt: 'schema: {', max_tokens: 40, temperature: 0.8, top_k: 40, top_p: 0.95, seed: 3 };
  const sample = await client.samples.create(job?.latest_checkpoint?.id ?? '', request);
  t.match(sample, { step: STEPS, prompt: request.prompt, usage: { completion_tokens: 40 } });
  const folder = join(stack.data_dir, 'objects', job?.export?.prefix ?? '');
  t.equal(request.prompt + sample.choices[0]?.text, await continueText(folder, request));
});

t.test('with a learning rate changed at run time: the digest of its document', async (t) => {
  const steps = 30;
  const spec = largerSteps(smallJob({ name: 'override', dataset, steps, ranks: 1 }), 20);
  const { id } = await client.jobs.create(spec);
  const { progress } = await client.jobs.until(id, (job) => job.progress.step >= 5, { interval_ms: 20 });
  // Far enough ahead that the request arrives before it.
  const overrides = [{ step: Math.ceil((progress.step + steps) / 2), lr: 1e-4 }];
  const [, changed] = await Promise.all([
    client.jobs.resize(id, 2),
    client.jobs.update(id, { train: { overrides } }),
  ]);
  t.strictSame(changed.spec.train.overrides, overrides);
  const final = await finish(await client.jobs.get(id));
  const { train } = final.spec;
  t.match(train.overrides, [{ lr: 1e-4 }]);
  t.ok((train.overrides[0]?.step ?? 0) >= (overrides[0]?.step ?? 0));
  const again = await finish(
    await client.jobs.create({ ...spec, train: { ...spec.train, overrides: train.overrides } }),
  );
  t.strictSame(resultOf(final), resultOf(again));
  const metrics = await collect(client.jobs.metrics(id));
  const begin = train.overrides[0]?.step ?? 0;
  t.equal(metrics.length, steps, 'no step was repeated');
  t.ok(
    metrics.every(({ step, lr }) => (lr === 1e-4) === step > begin),
    `in force from step ${begin} on`,
  );
});

t.test('paused on 2 ranks, resumed on 3 and resized to 1 while it runs: the same digest', async (t) => {
  const { id } = await client.jobs.create(smallJob({ name: '2-3-1', dataset, steps: STEPS, ranks: 2 }));
  const paused = await pauseAt(id, 10, 2);
  t.equal(paused.state, 'paused');
  t.equal(paused.latest_checkpoint?.step, paused.progress.step, 'a pause leaves a checkpoint of its step');
  await client.jobs.resume(id, { ranks: 3 });
  const isThere = ({ world_size, progress }: Job) => world_size === 3 && progress.step > paused.progress.step;
  const { attempt } = await client.jobs.until(id, isThere, { interval_ms: 10 });
  t.match(await client.jobs.resize(id, 1), { state: 'running', requested_ranks: 1 });
  const final = await finish(await client.jobs.get(id));
  t.same(resultOf(final), expected);
  t.match(final, { attempt, lost_work_seconds: 0 }, 'a resize begins no other attempt');
  const data = await collect(client.jobs.checkpoints(id));
  t.strictSame(
    data.map((checkpoint) => checkpoint.world_size),
    [1, 3, 2],
  );
  t.same(
    (await collect(client.jobs.metrics(id))).map(({ step }) => step),
    Array.from({ length: STEPS }, (_, index) => index + 1),
    'every step is reported once',
  );
});

t.test('a rank killed within a step: the same digest', async (t) => {
  // On a loaded machine a job of a second can end before this test sees its progress. Then it tries again.
  let types: string[] = [];
  for (let tries = 0; tries < MAX_TRIES && !types.includes('rank.lost'); tries++) {
    const spec = smallJob({ name: 'killed', dataset, steps: STEPS, ranks: 2, every_steps: 10 });
    const { id } = await client.jobs.create(spec);
    await client.jobs.until(id, (job) => job.progress.step >= 25, { interval_ms: 5 });
    const [, victim] = rankProcesses(stack.pid);
    if (victim) process.kill(victim.pid, 'SIGKILL');
    t.same(resultOf(await finish(await client.jobs.get(id))), expected);
    types = (await collect(client.jobs.events(id))).map((event) => event.type);
  }
  t.ok(types.includes('rank.lost'), types.join(' '));
});

t.test('everything that was started ends with the stack', async (t) => {
  t.equal(await stack.stop(), 0, stack.output());
  t.same(rankProcesses(stack.pid), []);
});
