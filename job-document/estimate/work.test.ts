import t from 'tap';
import type { JobSpec } from '../../contracts/index.js';
import { resolveSpec } from '../resolve-spec.js';
import { flopsPerToken } from './work.js';

const LENGTH = 64;
const config = {
  model_type: 'llama',
  vocab_size: 1000,
  hidden_size: 64,
  intermediate_size: 128,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  num_key_value_heads: 4,
} as const;
/** Matrices of a layer, and the output projection. */
const LAYER = 4 * 64 * 64 + 3 * 64 * 128;
const HEAD = 1000 * 64;
const VECTORS = 5 * 64;
/** Scores and weighted values of the tokens that a token sees on average. */
const ATTENTION = 2 * 4 * 64 * (LENGTH / 2);

function flops(frozen: string | null, train: JobSpec['train'] = {}): number {
  const { spec } = resolveSpec(
    {
      name: 'work',
      model: { config: { ...config, tie_word_embeddings: false } },
      data: { dataset: 'ds_1' },
      train: {
        steps: 1,
        sequence_length: LENGTH,
        ...train,
        ...(frozen && { optimizer: { param_groups: [{ match: frozen, frozen: true }] } }),
      },
    },
    null,
  );
  return flopsPerToken(spec);
}

t.test(
  'a token costs six operations for each parameter that it is multiplied with, four if that is frozen',
  async (t) => {
    t.equal(flops(null), 6 * (2 * LAYER + HEAD + VECTORS) + 3 * ATTENTION);
    t.equal(flops('lm_head.weight'), 6 * (2 * LAYER + VECTORS) + 4 * HEAD + 3 * ATTENTION);
    t.equal(flops('model.embed_tokens.weight'), flops(null), 'input embeddings are looked up');
  },
);

t.test(
  'a forward pass for the reference, and for mismatched sequences, with the adapter off or stored',
  async (t) => {
    const forward = 2 * (2 * LAYER + HEAD + VECTORS) + ATTENTION;
    const workOf = (objective: NonNullable<JobSpec['train']>['objective'], adapter?: object) =>
      flops(null, { ...(objective && { objective }), ...(adapter && { adapter }) });
    t.equal(workOf({ type: 'dpo' }), workOf(undefined), 'computed before the first step');
    t.equal(workOf({ type: 'kto' }) - workOf(undefined), forward);
    const factors = workOf({ type: 'orpo' }, {});
    t.equal(factors, workOf(undefined, {}));
    const base = workOf({ type: 'dpo' }, {}) - factors;
    t.ok(base > forward && base < 1.5 * forward);
    t.equal(workOf({ type: 'kto' }, {}) - factors, 3 * base);
  },
);
