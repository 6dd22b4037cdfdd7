import { causalLmClass, type ResolvedJobSpec } from '../../contracts/index.js';

/** The config.json of an exported model: what the job was given, and what describes the weights as they are now. */
export function hfConfig(spec: ResolvedJobSpec): Record<string, unknown> {
  const { config } = spec.model;
  const torch_dtype = spec.export.dtype === 'bf16' ? 'bfloat16' : 'float32';
  return {
    use_cache: true,
    // Without these, readers would assume the special tokens of the family's first tokenizer.
    bos_token_id: null,
    eos_token_id: null,
    pad_token_id: null,
    ...config,
    architectures: [causalLmClass(config)],
    torch_dtype,
    dtype: torch_dtype,
  };
}
