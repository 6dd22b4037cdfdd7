/**
 * Sampled tokens per second of reinforcement learning: `npm run bench -- grpo --peer PYTHON --steps 6`.
 *
 * A job with the objective `grpo` on a whole stack: each step samples `--group` answers of up to `--tokens` tokens to
 * `--prompts` prompts of `--prompt` tokens, compares them with a text, and trains all weights on them. The rate counts
 * sampled tokens over the time between two steps' metrics, grading and calls included. `--peer` is a Python with torch
 * and trl, which does the same in fp32. Both run in turn, `--rounds` times; the numbers are medians.
 */
import { collect, type Zerofleet } from '../clients/typescript/index.js';
import { type Owner, startStack } from '../test/support/stack.js';
import { benchOptions, count, oneOf, path } from './options.js';
import { runPython } from './peers/python.js';
import { median, report } from './report.js';
import { configs, precisions } from './training.js';

const WARMUP_STEPS = 1;

const { config, precision, threads, steps, rounds, prompts, group, prompt, tokens, micro, peer } =
  benchOptions({
    config: oneOf(configs, 'llama-tiny'),
    precision: oneOf(
      precisions.filter((name) => name !== 'fp16'),
      'bf16',
    ),
    threads: count(2),
    steps: count(6),
    rounds: count(3),
    prompts: count(8),
    group: count(8),
    prompt: count(32),
    tokens: count(64),
    micro: count(16),
    peer: path(),
  });
const samples = prompts * group;

const lines = Array.from({ length: prompts }, (_, line) => {
  const letters = Array.from({ length: prompt }, (_, i) => 97 + ((7 * line + i * i) % 26));
  return JSON.stringify({ prompt: String.fromCharCode(...letters) });
});

async function ours(client: Zerofleet, dataset: string): Promise<number> {
  const { id } = await client.jobs.create({
    model: { preset: config },
    data: { dataset, tokenizer: 'bytes' },
    train: {
      steps: steps + WARMUP_STEPS,
      sequence_length: prompt + tokens,
      global_batch_size: samples,
      micro_batch_size: micro,
      precision,
      objective: {
        type: 'grpo',
        prompts_per_step: prompts,
        group_size: group,
        max_tokens: tokens,
        grader: {
          type: 'text_similarity',
          name: 'letters',
          evaluation_metric: 'fuzzy_match',
          input: '{{sample.output_text}}',
          reference: 'the quick brown fox',
        },
      },
    },
  });
  const job = await client.jobs.wait(id);
  if (job.state !== 'succeeded') throw new Error(JSON.stringify(job.failure));
  const metrics = await collect(client.jobs.metrics(id));
  const [first, ...measured] = metrics.slice(WARMUP_STEPS - 1);
  const last = measured.at(-1);
  if (!first || !last) throw new Error(`there are only ${metrics.length} metrics`);
  const sampled = measured.reduce((sum, { reinforcement }) => sum + (reinforcement?.tokens ?? 0), 0);
  return (1000 * samples * sampled) / (Date.parse(last.at) - Date.parse(first.at));
}

async function theirs(python: string): Promise<number> {
  const options = { config, threads, steps, prompts, group, prompt, tokens, 'micro-batch': micro };
  return (await runPython<{ tokens_per_s: number }>(python, 'trl_grpo.py', options)).tokens_per_s;
}

const ends: (() => unknown)[] = [];
const owner = { teardown: (end: () => unknown) => ends.push(end) };
try {
  const env = { ZEROFLEET_SLOTS: '1', ZEROFLEET_THREADS_PER_RANK: `${threads}` };
  const { client } = await startStack(owner as Owner, { env });
  const { id } = await client.datasets.create('prompts', lines.join('\n'), 'jsonl');
  const speeds: { ours: number[]; peer: number[] } = { ours: [], peer: [] };
  for (let round = 0; round < rounds; round += 1) {
    speeds.ours.push(await ours(client, id));
    if (peer !== null) speeds.peer.push(await theirs(peer));
  }
  const tokensPerS = median(speeds.ours);
  report('grpo', {
    config,
    precision,
    threads,
    steps,
    rounds,
    samples,
    prompt,
    tokens,
    sampled_tokens_per_s: Math.round(tokensPerS),
    ...(peer !== null && {
      peer_tokens_per_s: Math.round(median(speeds.peer)),
      times_peer: Math.round((100 * tokensPerS) / median(speeds.peer)) / 100,
    }),
  });
} finally {
  for (const end of ends.reverse()) await end();
}
