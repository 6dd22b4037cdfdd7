import type { JobSpec, ResolvedJobSpec } from '../../contracts/index.js';
import { architectureOf, MODEL_TYPES, resolveSpec } from '../../job-document/index.js';
import type { Trainer } from '../../native/js/index.js';
import { firstModel } from '../support/families.js';
import { GPT2, SIZES } from './jobs.js';

const MODEL = { ...SIZES, model_type: 'llama', attention_bias: true, mlp_bias: true } as const;
const MIXTRAL = { ...SIZES, model_type: 'mixtral', num_local_experts: 3 } as const;
const GPT2_SESSION = { ...GPT2, resid_pdrop: 0, embd_pdrop: 0, attn_pdrop: 0 };

/** Sessions that differ in everything that affects the memory of a sample. */
const SESSIONS: Record<string, Pick<JobSpec, 'model'> & { train?: JobSpec['train']; threads?: number }> = {
  'fp32, two threads': { model: { config: MODEL }, train: { precision: 'fp32' }, threads: 2 },
  'sequences that fill the KV cache': { model: { config: MODEL }, train: { sequence_length: 1_100 } },
  'a sequence longer than the KV cache': {
    model: { config: { ...MODEL, num_hidden_layers: 1, max_position_embeddings: 16_500 } },
    train: { sequence_length: 16_500, micro_batch_size: 1, global_batch_size: 2 },
  },
  'DoRA over some matrices': {
    model: { config: MODEL },
    train: { adapter: { type: 'dora', rank: 8, target_modules: ['q_proj', 'down_proj'] } },
  },
  'LoRA over a GPT-2 in int8': {
    model: { config: GPT2_SESSION, quantization: 'int8' },
    train: { adapter: { rank: 4 } },
  },
  'LoRA over experts in fp32': {
    model: { config: MIXTRAL },
    train: { precision: 'fp32', adapter: { rank: 4 } },
  },
  ...Object.fromEntries(
    MODEL_TYPES.flatMap((type) => {
      const first = type === 'gpt2' ? GPT2_SESSION : firstModel(type, { ...SIZES, num_attention_heads: 12 });
      const dropout = Object.keys(first).filter((field) => field.includes('drop'));
      const config = { ...first, ...Object.fromEntries(dropout.map((field) => [field, 0])) };
      return [
        [type, { model: { config } }],
        [
          `LoRA over ${type} in NF4`,
          { model: { config, quantization: 'nf4' as const }, train: { adapter: { rank: 4 } } },
        ],
      ];
    }),
  ),
};

/** Returns the sessions of these names. */
export function sessionSpecs(
  names: readonly string[] = Object.keys(SESSIONS),
): { name: string; spec: ResolvedJobSpec; threads: number }[] {
  return names.map((name) => {
    const session = SESSIONS[name];
    if (!session) throw new Error(`there is no session ${name}`);
    const { model, train, threads = 1 } = session;
    const { spec, errors } = resolveSpec(
      {
        model,
        data: {},
        train: {
          sequence_length: 48,
          global_batch_size: 4,
          micro_batch_size: 2,
          ...train,
          session: {},
        },
        zero: { bucket_bytes: 65_536 },
        resources: { ranks: { max: 2 } },
      },
      null,
    );
    if (errors.length > 0) throw new Error(JSON.stringify(errors));
    return { name: `a session, ${name}`, spec, threads };
  });
}

/** Sequences that a rank runs at once. */
const SEQUENCES = 32;

/** Two steps, and samples that need the most memory: one is as long as the document allows. */
export async function runSession(world: Trainer[], spec: ResolvedJobSpec): Promise<void> {
  const { sequence_length: length, global_batch_size: count } = spec.train;
  const { vocab_size: vocab } = architectureOf(spec.model.config);
  const numbers = (size: number) => Int32Array.from({ length: size }, (_, i) => (i * 37 + 11) % vocab);
  const rows = {
    lengths: Int32Array.from({ length: count }, () => length),
    tokens: numbers(count * length),
    targets: numbers(count * length),
  };
  const requests = Array.from({ length: world.length * SEQUENCES }, (_, i) => ({
    prompt: numbers(i < world.length ? length - 1 : 5),
    max_tokens: 1,
    temperature: 1,
    top_p: 1,
    top_k: 0,
    seed: i,
    stop_tokens: Int32Array.of(),
  }));
  const update = { lr: 1e-3, betas: [0.9, 0.95] as [number, number], eps: 1e-8, weight_decay: 0.1 };
  await Promise.all(world.map((trainer) => trainer.initialize()));
  for (let step = 0; step < 2; step += 1) {
    await Promise.all(world.map((trainer) => trainer.forwardBackward({ type: 'cross_entropy' }, rows)));
    await Promise.all(world.map((trainer) => trainer.optimStep({ ...update, gradient_clipping: 1 })));
  }
  await Promise.all(world.map((trainer) => trainer.sample(requests)));
}
