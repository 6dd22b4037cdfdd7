/**
 * Adapters of one base are answered by one process, each with the text that it has alone; uploaded ones as the
 * checkpoints that they are from.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { collect } from '../../clients/typescript/index.js';
import type { ExportRequest, JobSpec } from '../../contracts/index.js';
import { TINY_TOKENIZER, tarOf } from '../../formats/testing/models.js';
import { modelProcesses } from '../support/processes.js';
import { startStack } from '../support/stack.js';
import { tinyJob } from '../support/zero-specs.js';

const { client, pid, data_dir } = await startStack(t);
const { id: dataset } = await client.datasets.create('text', Buffer.from('The fleet answers. '.repeat(300)));

async function trained(spec: JobSpec): Promise<string> {
  const { id } = await client.jobs.create(spec);
  const job = await client.jobs.until(id, () => false);
  t.equal(job.state, 'succeeded', JSON.stringify(job.failure));
  const [checkpoint] = await collect(client.jobs.checkpoints(id));
  return checkpoint?.id ?? '';
}

const base = await trained(tinyJob({ name: 'base', dataset }));
const adapted = (name: string, adapter: object) =>
  trained(
    tinyJob({
      name,
      dataset,
      init_from: { checkpoint: base },
      train: { adapter, optimizer: { lr: 5e-3 } },
    }),
  );
const checkpoints = [
  base,
  await adapted('narrow', { rank: 2, target_modules: ['q_proj', 'down_proj'] }),
  await adapted('wide', { rank: 8, rank_stabilized: true }),
];
const whole = await adapted('dora', { type: 'dora', rank: 4 });
const request = { prompt: 'The fleet', max_tokens: 32, temperature: 0.9, logprobs: 1 };
const ask = async (checkpoint: string, seed: number) =>
  (await client.samples.create(checkpoint, { ...request, seed })).choices;

t.test('one process answers for the base and its adapters, each as if it were alone', async (t) => {
  const asked = Array.from({ length: 30 }, (_, i) => [checkpoints[i % 3] ?? '', i % 5] as const);
  const together = await Promise.all(asked.map(([checkpoint, seed]) => ask(checkpoint, seed)));
  const [modelProcess, ...others] = modelProcesses(pid);
  t.strictSame(others, []);
  t.equal(new Set(together.slice(0, 3).map((choices) => choices[0]?.text)).size, 3);
  process.kill(modelProcess ?? Number.NaN, 'SIGKILL');
  for (const [index, [checkpoint, seed]] of asked.slice(0, 15).entries()) {
    t.strictSame(await ask(checkpoint, seed), together[index]);
    t.strictSame(together[index + 15], together[index]);
  }
});

t.test('an adapter with magnitudes has its own process', async (t) => {
  t.equal((await ask(whole, 1)).length, 1);
  t.equal(modelProcesses(pid).length, 2);
});

/** Each byte is a token, as in the jobs. */
const BYTES = {
  ...TINY_TOKENIZER,
  added_tokens: [],
  decoder: { type: 'Fuse' },
  model: {
    type: 'BPE',
    vocab: Object.fromEntries(Array.from({ length: 256 }, (_, id) => [String.fromCharCode(id), id])),
    merges: [],
  },
};

/** Uploads an export, and returns its id. @param baseId base of an adapter */
async function uploaded(checkpoint: string, request: ExportRequest, baseId?: string): Promise<string> {
  let exported = await client.checkpoints.export(checkpoint, request);
  while (exported.state === 'queued' || exported.state === 'running') {
    await new Promise((resolve) => setTimeout(resolve, 100));
    exported = await client.checkpoints.export(checkpoint, request);
  }
  if (exported.state !== 'succeeded') throw new Error(JSON.stringify(exported.error));
  const folder = join(data_dir, 'objects', exported.prefix);
  const files = readdirSync(folder).map((name): [string, Buffer] => [name, readFileSync(join(folder, name))]);
  if (baseId === undefined) files.push(['tokenizer.json', Buffer.from(JSON.stringify(BYTES))]);
  return (
    await client.models.create('uploaded', await tarOf(files), baseId === undefined ? {} : { base: baseId })
  ).id;
}

const numbers = async (model: string) =>
  (await ask(model, 3)).flatMap(({ logprobs }) =>
    logprobs.map(({ logprob, top }) => [logprob, top[0]?.logprob]),
  );

t.test('over a quantized base, answers have the bits of those with the restored weights', async (t) => {
  const over = (quantization: 'nf4' | 'int8', lr: number) => {
    const train = { adapter: { rank: 2 }, optimizer: { lr } };
    const spec = tinyJob({ name: quantization, dataset, init_from: { checkpoint: base }, train });
    return trained({ ...spec, model: { ...spec.model, quantization } });
  };
  for (const quantization of ['nf4', 'int8'] as const) {
    // This adapter adds nothing that rounding leaves, so the export has the restored base.
    const still = await over(quantization, 1e-30);
    const restored = await uploaded(still, { dtype: 'bf16' });
    t.strictSame(await numbers(still), await numbers(restored), quantization);
    t.strictNotSame(await numbers(still), await numbers(base));
    t.strictNotSame(await numbers(await over(quantization, 5e-3)), await numbers(still));
  }
});

t.test('an uploaded adapter has the answers of its checkpoint', async (t) => {
  const below = await uploaded(base, { dtype: 'bf16' });
  for (const adapter of [
    { modules_to_save: [] },
    { modules_to_save: ['norm', 'lm_head', 'embed_tokens', 'o_proj'] },
    { type: 'dora', modules_to_save: ['lm_head'] },
  ]) {
    const checkpoint = await adapted('uploaded', { rank: 2, target_modules: ['q_proj'], ...adapter });
    const model = await uploaded(checkpoint, { format: 'peft', dtype: 'fp32' }, below);
    t.strictSame(await numbers(model), await numbers(checkpoint), JSON.stringify(adapter));
  }
});
