import t from 'tap';
import type { Architecture } from '../../contracts/architecture.js';
import { kernelNames, measureBandwidth, measureGemm, measureKernel } from './index.js';
import { tinyConfig } from './testing.js';

const llama = tinyConfig('').model;
/** GPT-2's way: weights the other way round, one matrix for queries, keys and values, a tied embedding. */
const gpt2: Architecture = {
  ...llama,
  naming: 'gpt2',
  num_key_value_heads: llama.num_attention_heads,
  mlp: 'gelu_tanh',
  norm: 'layer',
  positions: 'learned',
  qkv_bias: true,
  output_bias: true,
  mlp_bias: true,
  tie_word_embeddings: true,
};
const PASS = { micro_batch_size: 2, sequence_length: 12, threads: 2, repeats: 1 };

for (const [name, model] of Object.entries({ llama, gpt2 })) {
  for (const precision of ['bf16', 'fp32'] as const) {
    t.test(`every operation in the shapes of a small ${name}, ${precision}`, async (t) => {
      for (const op of kernelNames()) {
        const times = await measureKernel({ op, model, precision, ...PASS });
        t.ok(Number.isFinite(times.mean_magnitude), `${op} gives finite numbers`);
        t.ok(times.mean_magnitude > 0, `${op} gives other numbers than 0`);
        t.ok(times.bytes > 0 && times.shape !== '', `${op} says what it moves`);
        t.equal(times.seconds.length, PASS.repeats, op);
      }
    });
  }
}

t.test('products count their operations, other kernels have none', async (t) => {
  const measured = (op: string) => measureKernel({ op, model: llama, precision: 'bf16', ...PASS });
  const { hidden_size, intermediate_size, num_attention_heads, head_dim } = llama;
  t.equal((await measured('mlp_out.dw')).operations, 2 * 24 * intermediate_size * hidden_size);
  const pairs = 2 * num_attention_heads * ((12 * 13) / 2);
  t.equal((await measured('attention.forward')).operations, 2 * 2 * head_dim * pairs);
  t.equal((await measured('attention.backward')).operations, 2 * 5 * head_dim * pairs);
  t.equal((await measured('rope')).operations, 0);
});

t.test('invalid measurements are refused', async (t) => {
  const options = { op: 'rope', model: llama, precision: 'bf16' as const, ...PASS };
  await t.rejects(measureKernel({ ...options, op: 'ropes' }), {
    code: 'invalid_argument',
    message: /'ropes'/,
  });
  await t.rejects(measureKernel({ ...options, repeats: 0 }), { code: 'invalid_argument' });
  await t.rejects(measureKernel({ ...options, model: { ...llama, hidden_size: 0 } }), {
    code: 'invalid_model_config',
  });
  await t.rejects(measureBandwidth({ bytes: 0, pass: 'copy', threads: 1, repeats: 1 }), {
    code: 'invalid_argument',
  });
});

t.test('passes over memory', async (t) => {
  for (const pass of ['in_place', 'copy', 'read'] as const)
    t.equal((await measureBandwidth({ bytes: 1 << 20, pass, threads: 2, repeats: 2 })).length, 2);
});

t.test('an error of the standard library is an internal one, and the process lives on', async (t) => {
  // 2^62 values are more than a std::vector can hold: std::length_error.
  const shape = { m: 2 ** 31, n: 1, k: 2 ** 31, precision: 'bf16', threads: 1, repeats: 1 } as const;
  await t.rejects(measureGemm(shape), { code: 'internal' });
  t.equal((await measureGemm({ ...shape, m: 16, k: 16 })).length, 1);
});
