import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import type { JobExport, JobSpec } from '../../contracts/index.js';
import { smallJob } from '../support/specs.js';
import { sampleText, startStack, type TestStack } from '../support/stack.js';

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

async function exported(spec: JobSpec): Promise<{ result: JobExport; file: (name: string) => Buffer }> {
  const { id } = await stack.client.jobs.create(spec);
  const job = await stack.client.jobs.until(id, () => false);
  if (!job.export) throw new Error(`no export: ${job.state} ${JSON.stringify(job.failure)}`);
  const { prefix } = job.export;
  return { result: job.export, file: (name) => readFileSync(join(stack.data_dir, 'objects', prefix, name)) };
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
    const spec = smallJob({ name: dtype, dataset, steps: 3, ranks: 2 });
    Object.assign(spec.model.config ?? {}, { tie_word_embeddings: tied, eos_token_id: 0 });
    spec.export = { format: 'safetensors', dtype };
    const { result, file } = await exported(spec);

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
