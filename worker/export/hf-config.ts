import type { ResolvedJobSpec } from '../../contracts/index.js';
import { causalLmClass, floatFields } from '../../spec/index.js';
import { NumberText } from './exact-json.js';

const TORCH_DTYPES = { bf16: 'bfloat16', fp16: 'float16', fp32: 'float32' } as const;

/**
 * The `config.json` of an exported model, for `stringifyExactly`.
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
    ...(source ?? { ...UNSAID, ...withFloats(config, floatFields(config)) }),
    // What describes the weights as they are now: without their head they may have come, and in another dtype.
    architectures: [causalLmClass(config)],
    torch_dtype: dtype,
    dtype,
  };
}

/** Readers of Hugging Face refuse an integer where a float is expected. */
function withFloats(fields: object, floats: ReadonlySet<string>, at = ''): Record<string, unknown> {
  const written = Object.entries(fields).map(([name, value]): [string, unknown] => {
    if (floats.has(at + name) && Number.isInteger(value)) return [name, new NumberText(`${value}.0`)];
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
    return [name, isObject ? withFloats(value, floats, `${at}${name}.`) : value];
  });
  return Object.fromEntries(written);
}

/** Without these, readers would assume the special tokens of a family's first tokenizer. */
const UNSAID = { use_cache: true, bos_token_id: null, eos_token_id: null, pad_token_id: null };
