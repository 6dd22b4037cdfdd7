import t from 'tap';
import type { JobSpec } from '../../contracts/index.js';
import { resolveSpec } from '../resolve-spec.js';
import { DATASET, LLAMA, SMALLEST } from '../testing/documents.js';

/** Llama of about 12 · layers · width² parameters, in MiB of its default buckets. */
const MODELS: [layers: number, width: number, zero: JobSpec['zero'], mib: number][] = [
  [2, 256, {}, 16],
  [12, 768, {}, 16],
  [24, 1024, {}, 64],
  [24, 1024, { reduce_dtype: 'fp32' }, 128],
  [24, 2048, {}, 128],
  [40, 5120, {}, 128],
];

t.test('the default of bucket_bytes is a sixteenth of all gradients, within bounds', async (t) => {
  for (const [layers, width, zero, mib] of MODELS) {
    const config = {
      ...LLAMA,
      hidden_size: width,
      intermediate_size: Math.round((8 / 3) * width),
      num_hidden_layers: layers,
      num_attention_heads: width / 64,
      num_key_value_heads: width / 64,
      vocab_size: 32_000,
    };
    const { spec } = resolveSpec({ ...SMALLEST, model: { config }, zero }, DATASET);
    t.equal(spec.zero.bucket_bytes, mib * 2 ** 20, `${layers} layers of ${width}, ${JSON.stringify(zero)}`);
  }
});
