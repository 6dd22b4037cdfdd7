import t from 'tap';
import { resolveSpec } from '../resolve-spec.js';
import { attentionMemory } from './attention-memory.js';
import { Sizes } from './sizes.js';

const MACHINE = { device: 'cuda', threads: 1, instruction_set: 'generic' } as const;

interface Attention {
  batch: number;
  length: number;
  heads: number;
  keyHeads: number;
  width: number;
  precision?: 'bf16' | 'fp32';
}

function memory({ batch, length, heads, keyHeads, width, precision = 'bf16' }: Attention): number {
  const { spec, errors } = resolveSpec(
    {
      model: {
        config: {
          model_type: 'llama',
          vocab_size: 1024,
          hidden_size: heads * width,
          intermediate_size: 256,
          num_hidden_layers: 1,
          num_attention_heads: heads,
          num_key_value_heads: keyHeads,
          max_position_embeddings: length,
        },
      },
      data: { dataset: `ds_${'0'.repeat(26)}` },
      train: {
        steps: 1,
        sequence_length: length,
        micro_batch_size: batch,
        global_batch_size: batch,
        precision,
      },
    },
    null,
  );
  if (errors.length > 0) throw new Error(JSON.stringify(errors));
  return attentionMemory(new Sizes(spec, MACHINE));
}

/** Sums of rows, statistics of a trial, and its queries, keys, values, outputs and gradients. */
function besideWorkspace({ batch, length, heads, keyHeads, width }: Attention): number {
  const rows = batch * length;
  return 8 * rows * heads + 2 * rows * width * (3 * heads + 2 * keyHeads) + 4 * length;
}

t.test('a backward keeps scores in 16 bits, of whole tiles of 64 tokens', async (t) => {
  for (const [length, padded] of [
    [1024, 1024],
    [1000, 1024],
  ] as const) {
    const shape = { batch: 16, length, heads: 12, keyHeads: 12, width: 64 };
    const rest = memory(shape) - besideWorkspace(shape) - 2 * 16 * 12 * padded ** 2;
    t.ok(rest > 0 && rest < 8192, `${rest}`);
  }
});

t.test('gradients of shared keys exist for each query head', async (t) => {
  const shape = { batch: 2, length: 1024, heads: 8, keyHeads: 2, width: 64 };
  const rest = memory(shape) - besideWorkspace(shape) - 16 * (2 * 1024 ** 2 + 4 * 1024 * 64);
  t.ok(rest > 0 && rest < 8192, `${rest}`);
});

t.test(
  'larger ones are computed in parts of up to 1 GiB: sequences, heads of one, or by other kernels',
  async (t) => {
    for (const [length, heads, parts] of [
      [4096, 12, 12 * 2], // two of six sequences
      [8192, 12, 6], // half of the heads of one
      [32768, 12, 0],
    ] as const) {
      const shape = { batch: 6, length, heads, keyHeads: heads, width: 64 };
      const rest = memory(shape) - besideWorkspace(shape) - parts * 2 * length ** 2;
      t.ok(rest > 0 && rest < 8192, `${length}: ${rest}`);
    }
  },
);

t.test('cuDNN takes no fp32, and heads with a multiple of 8 columns', async (t) => {
  const shape = { batch: 2, length: 64, heads: 2, keyHeads: 2, width: 16 };
  t.equal(memory({ ...shape, precision: 'fp32' }), 0);
  t.equal(memory({ ...shape, width: 12 }), 0);
  t.equal(memory({ ...shape, width: 264 }), 0);
});
