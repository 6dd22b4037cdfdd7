import type { ResolvedJobSpec } from '../../../contracts/index.js';
import { NumberText } from '../../../contracts/jsonl/exact-json.js';
import { causalLmClass, floatFields } from '../../../job-document/index.js';

const TORCH_DTYPES = { bf16: 'bfloat16', fp16: 'float16', fp32: 'float32' } as const;

/**
 * Returns the `config.json` of an exported model, for `stringifyExactly`.
 * @param weights dtype of the stored weights
 * @param source the file of the job's initial model; null: generated from the spec
 */
export function hfConfig(
  spec: ResolvedJobSpec,
  weights: keyof typeof TORCH_DTYPES,
  source: Readonly<Record<string, unknown>> | null = null,
): Record<string, unknown> {
  const { config } = spec.model;
  const dtype = TORCH_DTYPES[weights];
  return {
    ...(source ?? { ...DEFAULTS, ...withFloats(config, floatFields(config)) }),
    // Describes the exported weights, whose head and dtype may differ from the source.
    architectures: [causalLmClass(config)],
    // The files of its code are not exported; transformers has the same.
    auto_map: undefined,
    torch_dtype: dtype,
    dtype,
  };
}

/** Formats integers as floats where Hugging Face readers expect floats. */
function withFloats(fields: object, floats: ReadonlySet<string>, at = ''): Record<string, unknown> {
  const written = Object.entries(fields).map(([name, value]): [string, unknown] => {
    if (floats.has(at + name) && Number.isInteger(value)) return [name, new NumberText(`${value}.0`)];
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
    return [name, isObject ? withFloats(value, floats, `${at}${name}.`) : value];
  });
  return Object.fromEntries(written);
}

/** Without these, readers would assume the default special tokens of the family. */
const DEFAULTS = { use_cache: true, bos_token_id: null, eos_token_id: null, pad_token_id: null };
