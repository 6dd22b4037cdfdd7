import { causalLmClass, type ResolvedJobSpec } from '../../contracts/index.js';

const TORCH_DTYPES = { bf16: 'bfloat16', fp16: 'float16', fp32: 'float32' } as const;

/**
 * The `config.json` of an exported model.
 * @param weights what they are stored in
 * @param source the file of the model that the job began with; null: made from what the job was given
 */
export function hfConfig(
  spec: ResolvedJobSpec,
  weights: keyof typeof TORCH_DTYPES,
  source: Readonly<Record<string, unknown>> | null = null,
): Record<string, unknown> {
  const { config } = spec.model;
  const dtype = TORCH_DTYPES[weights];
  return {
    ...(source ?? { ...UNSAID, ...config }),
    // What describes the weights as they are now: without their head they may have come, and in another dtype.
    architectures: [causalLmClass(config)],
    torch_dtype: dtype,
    dtype,
  };
}

/** Without these, readers would assume the special tokens of a family's first tokenizer. */
const UNSAID = { use_cache: true, bos_token_id: null, eos_token_id: null, pad_token_id: null };
