/**
 * A training session beside a job with the same steps: `npm run bench -- session --config llama-tiny --ranks 1`.
 *
 * Both run on a whole stack, in turn. Each step of the session is a forward_backward and an optim_step; the client has
 * up to `--ahead` calls without a result, and reads every result. Tokens per second are those between two steps'
 * metrics, without the first steps. `step_ms` is the computation of a step by the ranks, `total_ms` the time between
 * two steps. `call_ms` is the median time from sending a call without computation (an update without gradients) to its
 * result, with nothing else in progress.
 *
 * `sample_tokens_per_s` is the rate of a `sample` with 64 prompts of 32 tokens, two samples of 64 tokens each. An
 * engine of answers (bench/serve.ts) with as many threads computes the same work in this process:
 * `engine_tokens_per_s`.
 */
import { collect, type Zerofleet } from '../clients/typescript/index.js';
import type { Call, JobMetric, JobSpec } from '../contracts/index.js';
import { architectureOf, presets } from '../job-document/index.js';
import { type AnswerEngine, GREEDY } from '../native/js/index.js';
import { type Owner, startStack } from '../test/support/stack.js';
import { benchOptions, count, oneOf } from './options.js';
import { median, report } from './report.js';
import { engineWithWeights } from './serve/models.js';
import { configs, LEAVES_PER_STEP, shapeOf } from './training.js';

const WARM_UP = 5;
const SINGLE_CALLS = 20;
const SAMPLE = { prompts: 64, prompt: 32, n: 2, tokens: 64 };
const SEQUENCES = 32;

const { config, ranks, threads, steps, rounds, length, rows, ahead } = benchOptions({
  config: oneOf(configs, 'llama-tiny'),
  ranks: count(1),
  threads: count(2),
  steps: count(40),
  rounds: count(3),
  length: count(shapeOf('llama-tiny').sequence_length),
  rows: count(shapeOf('llama-tiny').micro_batch_size),
  ahead: count(16),
});

const tokensPerStep = LEAVES_PER_STEP * rows * length;
const text = Array.from({ length: tokensPerStep * 4 }, (_, i) =>
  String.fromCharCode(97 + ((i * i) % 26)),
).join('');

const train = {
  sequence_length: length,
  micro_batch_size: rows,
  global_batch_size: LEAVES_PER_STEP * rows,
  precision: 'bf16',
} as const;

const common = {
  model: { preset: config },
  resources: { ranks: { preferred: ranks } },
} satisfies Partial<JobSpec>;

interface Speed {
  tokens_per_s: number;
  step_ms: number;
  total_ms: number;
}

function speedOf(metrics: readonly JobMetric[]): Speed {
  const measured = metrics.slice(WARM_UP);
  const [first, last] = [measured[0], measured.at(-1)];
  if (!first || !last) throw new Error(`there are only ${metrics.length} metrics`);
  const totalMs = (Date.parse(last.at) - Date.parse(first.at)) / (measured.length - 1);
  return {
    tokens_per_s: Math.round((tokensPerStep * 1000) / totalMs),
    step_ms: round(median(measured.slice(1).map(({ seconds }) => 1000 * seconds.total))),
    total_ms: round(totalMs),
  };
}

const round = (value: number) => Math.round(value * 10) / 10;

async function ofJob(client: Zerofleet, dataset: string): Promise<Speed> {
  const { id } = await client.jobs.create({ ...common, data: { dataset }, train: { ...train, steps } });
  await client.jobs.until(id, () => false);
  return speedOf(await collect(client.jobs.metrics(id), steps));
}

function passOf(step: number): Call {
  const all = [...Buffer.from(text)];
  const row = (i: number) => {
    const begin = ((step * LEAVES_PER_STEP * rows + i) * length) % (all.length - length);
    return { tokens: all.slice(begin, begin + length), targets: all.slice(begin + 1, begin + length + 1) };
  };
  return {
    type: 'forward_backward',
    loss: { type: 'cross_entropy' },
    rows: Array.from({ length: LEAVES_PER_STEP * rows }, (_, i) => row(i)),
  };
}

const samplePrompts = Array.from({ length: SAMPLE.prompts }, (_, row) =>
  Array.from({ length: SAMPLE.prompt }, (_, i) => (i * 31 + row * 7 + 1) % 256),
);
const sampleRate = (began: number) =>
  Math.round((1000 * SAMPLE.prompts * SAMPLE.n * SAMPLE.tokens) / (performance.now() - began));

async function ofEngine(engine: AnswerEngine, first: number): Promise<number> {
  const all = samplePrompts.flatMap((prompt) => Array.from({ length: SAMPLE.n }, () => prompt));
  const began = performance.now();
  for (const [i, prompt] of all.entries())
    engine.add(first + i, prompt, { ...GREEDY, temperature: 1, seed: i, max_tokens: SAMPLE.tokens });
  for (let drawn = 0; drawn < all.length * SAMPLE.tokens; ) drawn += (await engine.step()).length;
  return sampleRate(began);
}

type SessionSpeed = Speed & { call_ms: number; sample_tokens_per_s: number };

async function ofSession(client: Zerofleet): Promise<SessionSpeed> {
  const { id } = await client.jobs.create({ ...common, data: {}, train: { ...train, session: {} } });
  const results: Promise<unknown>[] = [];
  let number = 0;
  const append = async (call: Call) => {
    number += 1;
    await results[number - 1 - ahead];
    await client.calls.put(id, number, call);
    results.push(client.calls.result(id, number));
  };
  const update: Call = { type: 'optim_step', lr: 1e-3 };
  for (let step = 0; step < steps; step += 1) {
    await append(passOf(step));
    await append(update);
  }
  await Promise.all(results);
  const latencies: number[] = [];
  for (let i = 0; i < SINGLE_CALLS; i += 1) {
    const began = performance.now();
    await append(update);
    await results.at(-1);
    latencies.push(performance.now() - began);
  }
  const speed = speedOf(await collect(client.jobs.metrics(id), steps));
  const began = performance.now();
  await append({ type: 'sample', prompts: samplePrompts, n: SAMPLE.n, max_tokens: SAMPLE.tokens, seed: 1 });
  await results.at(-1);
  const sampled = sampleRate(began);
  await append({ type: 'finish' });
  await client.jobs.until(id, () => false);
  return { ...speed, call_ms: round(median(latencies)), sample_tokens_per_s: sampled };
}

const ends: (() => unknown)[] = [];
const owner = { teardown: (end: () => unknown) => ends.push(end) };
try {
  const env = { ZEROFLEET_SLOTS: `${ranks}`, ZEROFLEET_THREADS_PER_RANK: `${threads}` };
  const { client } = await startStack(owner as Owner, { env });
  const dataset = await client.datasets.create('bench', text);
  const engine = await engineWithWeights(architectureOf(presets[config]), {
    threads,
    dtype: 'bf16',
    max_length: SAMPLE.prompt + SAMPLE.tokens,
    max_sequences: SEQUENCES,
  });
  ends.push(() => engine.close());
  for (let i = 0; i < rounds; i += 1) {
    const job = await ofJob(client, dataset.id);
    const session = await ofSession(client);
    report('session', {
      config,
      ranks,
      threads,
      tokens_per_step: tokensPerStep,
      job,
      session,
      engine_tokens_per_s: await ofEngine(engine, i * SAMPLE.prompts * SAMPLE.n),
      times: Math.round((session.tokens_per_s / job.tokens_per_s) * 1000) / 1000,
    });
  }
} finally {
  for (const end of ends.reverse()) await end();
}
