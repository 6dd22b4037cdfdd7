import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import t from 'tap';
import { collect } from '../../clients/typescript/index.js';
import type { ExportRequest, JobSpec } from '../../contracts/index.js';
import { ADAPTER, sumOf, tensorsOf } from '../support/adapted.js';
import { smallJob } from '../support/specs.js';
import { sampleText, startStack, type TestStack } from '../support/stack.js';
import { roundedToBf16, StoredState } from '../support/stored-state.js';

interface TensorEntry {
  dtype: string;
  shape: number[];
  data_offsets: [number, number];
}

let stack: TestStack;
let dataset: string;

/** Header of a safetensors file, parsed by the format's specification: length, JSON, bytes. */
function readHeader(file: Buffer): {
  tensors: Record<string, TensorEntry>;
  dataBytes: number;
  metadata: unknown;
} {
  const headerBytes = Number(file.readBigUInt64LE(0));
  const header = JSON.parse(file.subarray(8, 8 + headerBytes).toString('utf8'));
  const { __metadata__: metadata, ...tensors } = header;
  return { tensors, metadata, dataBytes: file.length - 8 - headerBytes };
}

/** The names and shapes that transformers' LlamaForCausalLM expects. */
function expectedShapes(config: Record<string, number>, tied: boolean): Record<string, number[]> {
  const {
    hidden_size: hidden,
    intermediate_size: inner,
    num_hidden_layers: layers,
    vocab_size: vocab,
  } = config;
  const { num_attention_heads: heads, num_key_value_heads: keyHeads } = config;
  if (!hidden || !inner || !layers || !vocab || !heads || !keyHeads) throw new Error('incomplete config');
  const width = config.head_dim ?? hidden / heads;
  const shapes: Record<string, number[]> = {
    'model.embed_tokens.weight': [vocab, hidden],
    'model.norm.weight': [hidden],
  };
  for (let layer = 0; layer < layers; ++layer) {
    Object.assign(shapes, {
      [`model.layers.${layer}.input_layernorm.weight`]: [hidden],
      [`model.layers.${layer}.self_attn.q_proj.weight`]: [heads * width, hidden],
      [`model.layers.${layer}.self_attn.k_proj.weight`]: [keyHeads * width, hidden],
      [`model.layers.${layer}.self_attn.v_proj.weight`]: [keyHeads * width, hidden],
      [`model.layers.${layer}.self_attn.o_proj.weight`]: [hidden, heads * width],
      [`model.layers.${layer}.post_attention_layernorm.weight`]: [hidden],
      [`model.layers.${layer}.mlp.gate_proj.weight`]: [inner, hidden],
      [`model.layers.${layer}.mlp.up_proj.weight`]: [inner, hidden],
      [`model.layers.${layer}.mlp.down_proj.weight`]: [hidden, inner],
    });
  }
  return tied ? shapes : { ...shapes, 'lm_head.weight': [vocab, hidden] };
}

async function exported(spec: JobSpec) {
  const { id } = await stack.client.jobs.create(spec);
  const job = await stack.client.jobs.until(id, () => false);
  if (!job.export) throw new Error(`no export: ${job.state} ${JSON.stringify(job.failure)}`);
  const { prefix } = job.export;
  return { id, result: job.export, path: (name: string) => join(stack.data_dir, 'objects', prefix, name) };
}

t.before(async () => {
  stack = await startStack(t);
  dataset = (await stack.client.datasets.create('openapi', sampleText())).id;
});

for (const [dtype, tied] of [
  ['bf16', false],
  ['fp32', true],
] as const) {
  t.test(`export as ${dtype}, ${tied ? 'tied' : 'untied'} embeddings`, async (t) => {
    const spec = smallJob({ name: dtype, dataset, steps: 3, ranks: 1 });
    Object.assign(spec.model.config ?? {}, { tie_word_embeddings: tied, eos_token_id: 0 });
    spec.export = { format: 'safetensors', dtype };
    const { result, path } = await exported(spec);
    const file = (name: string) => readFileSync(path(name));

    t.same(result.files.map(({ name }) => name).sort(), ['config.json', 'model.safetensors']);
    for (const { name, bytes, sha256 } of result.files) {
      t.equal(file(name).length, bytes);
      t.equal(createHash('sha256').update(file(name)).digest('hex'), sha256);
    }

    const config = JSON.parse(file('config.json').toString('utf8'));
    t.match(config, {
      architectures: ['LlamaForCausalLM'],
      model_type: 'llama',
      hidden_size: 96,
      num_key_value_heads: 2,
      tie_word_embeddings: tied,
      eos_token_id: 0,
    });

    const { tensors, dataBytes, metadata } = readHeader(file('model.safetensors'));
    t.match(metadata, { format: 'pt' }, 'transformers refuses files without it');
    const shapes = Object.fromEntries(Object.entries(tensors).map(([name, { shape }]) => [name, shape]));
    t.strictSame(shapes, expectedShapes(config, tied));
    const elementBytes = dtype === 'bf16' ? 2 : 4;
    let end = 0;
    for (const tensor of Object.values(tensors).toSorted((a, b) => a.data_offsets[0] - b.data_offsets[0])) {
      t.equal(tensor.dtype, dtype === 'bf16' ? 'BF16' : 'F32');
      t.equal(tensor.data_offsets[0], end, 'tensors follow each other without a gap');
      end = tensor.data_offsets[0] + elementBytes * tensor.shape.reduce((product, size) => product * size, 1);
      t.equal(tensor.data_offsets[1], end);
    }
    t.equal(end, dataBytes);
  });
}

const DECAY = 0.75;

/** Trains with an average and a checkpoint of every step, and exports the average. Returns the states of the steps. */
async function averaged({
  train,
  export: format,
  model,
}: Pick<JobSpec, 'train' | 'export'> & Partial<JobSpec>) {
  const spec = smallJob({ name: 'average', dataset, steps: 4, ranks: 3, every_steps: 1, keep: { last: 4 } });
  const { id, path } = await exported({
    ...spec,
    model: { ...spec.model, ...model },
    train: { ...spec.train, ...train, ema: { decay: DECAY } } as JobSpec['train'],
    checkpoint: { ...spec.checkpoint, on_busy: 'wait' },
    export: { ...format, dtype: 'fp32', weights: 'ema' },
  });
  const checkpoints = (await collect(stack.client.jobs.checkpoints(id))).toReversed();
  const states = checkpoints.map((checkpoint) => new StoredState(stack.data_dir, checkpoint));
  return { path, states, checkpoint: checkpoints.at(-1)?.id ?? '' };
}

/** The average of one parameter from its master weights after each step, by its definition. */
function averageOf(states: readonly StoredState[], param: string): Float32Array {
  return states
    .map((state) => state.read('master', param))
    .reduce((average, master) =>
      average.map((value, i) => value + Math.fround(Math.fround((master[i] ?? 0) - value) * (1 - DECAY))),
    );
}

async function exportOf(checkpoint: string, request: ExportRequest): Promise<(name: string) => string> {
  let exported = await stack.client.checkpoints.export(checkpoint, request);
  while (exported.state === 'queued' || exported.state === 'running') {
    await delay(50);
    exported = await stack.client.checkpoints.export(checkpoint, request);
  }
  if (exported.state !== 'succeeded') throw new Error(JSON.stringify(exported.error));
  const { prefix } = exported;
  return (name) => join(stack.data_dir, 'objects', prefix, name);
}

t.test('the average of the weights is exported, of a model and of an adapter', async (t) => {
  const frozen = 'model.norm.weight';
  const train = { optimizer: { param_groups: [{ match: frozen, frozen: true }] } } as JobSpec['train'];
  const { path, states, checkpoint } = await averaged({ train });
  t.equal(states.length, 4);
  const last = states[3] as StoredState;
  t.same(last.manifest.states, ['master', 'exp_avg', 'exp_avg_sq', 'ema']);
  const average = tensorsOf(path('model.safetensors'));
  const trained = tensorsOf(
    (await exportOf(checkpoint, { dtype: 'fp32', weights: 'trained' }))('model.safetensors'),
  );
  for (const { name } of last.manifest.params) {
    const master = last.read('master', name);
    t.same(trained.get(name), master, name);
    t.same(average.get(name), name === frozen ? master : averageOf(states, name), name);
    t.equal(last.tensors.flat().includes(`ema/${name}`), name !== frozen);
  }
  const { files } = await stack.client.checkpoints.downloadUrls(checkpoint, { format: 'safetensors' });
  t.ok(
    files.some(({ name }) => name === 'model.safetensors'),
    'a download is of the average, too',
  );

  const adapted = await averaged({
    model: { init_from: { checkpoint } },
    train: { adapter: ADAPTER } as unknown as JobSpec['train'],
    export: { format: 'peft' },
  });
  for (const [name, values] of tensorsOf(adapted.path('adapter_model.safetensors')))
    t.same(values, averageOf(adapted.states, name.replace('base_model.model.', '')), name);
  const merged = tensorsOf((await exportOf(adapted.checkpoint, { dtype: 'fp32' }))('model.safetensors'));
  const module = 'model.layers.1.mlp.down_proj';
  const [down, up] = ['A', 'B'].map((factor) => averageOf(adapted.states, `${module}.lora_${factor}.weight`));
  const base = roundedToBf16(last.read('master', `${module}.weight`));
  t.same(merged.get(`${module}.weight`), Float32Array.from(sumOf(base, down!, up!)));
});
