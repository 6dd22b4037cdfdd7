import t from 'tap';
import { type ExportRequest, type ResolvedJobSpec, ZerofleetError } from '../../contracts/index.js';
import { resolveExport } from './resolve-export.js';

type Adapter = NonNullable<ResolvedJobSpec['train']['adapter']>;

const ADAPTER: Adapter = {
  type: 'lora',
  rank: 4,
  alpha: 8,
  rank_stabilized: false,
  dropout: 0,
  init: 'kaiming_uniform',
  target_modules: ['q_proj'],
  modules_to_save: [],
};
const LLAMA = {
  model_type: 'llama',
  hidden_size: 32,
  num_attention_heads: 4,
  num_key_value_heads: 4,
  head_dim: 8,
  attention_bias: false,
  mlp_bias: false,
  rope_scaling: null,
};

/** Returns "format dtype", or "pointer code suggestion" of the refusal. */
function resolved(request: ExportRequest, adapter?: Partial<Adapter>, model = {}): string {
  const spec = {
    model: { config: { ...LLAMA, ...model } },
    train: adapter && { adapter: { ...ADAPTER, ...adapter } },
    export: { format: 'safetensors', dtype: 'bf16', weights: 'trained', tensorboard: false },
  } as unknown as ResolvedJobSpec;
  try {
    const { format, dtype } = resolveExport(request, { ...spec, train: spec.train ?? {} } as ResolvedJobSpec);
    return `${format} ${dtype}`;
  } catch (error) {
    if (!(error instanceof ZerofleetError)) throw error;
    const [{ pointer, code, suggestion } = {}] = error.fields;
    return `${pointer} ${code} ${suggestion}`;
  }
}

t.test('files of llama.cpp', async (t) => {
  t.equal(resolved({ format: 'gguf' }), 'gguf bf16');
  t.equal(resolved({ format: 'gguf', dtype: 'q8_0' }), 'gguf q8_0');
  t.equal(resolved({ format: 'gguf' }, { type: 'dora', modules_to_save: ['norm'] }), 'gguf bf16');
  t.equal(resolved({ dtype: 'q8_0' }), '/dtype export_unsupported bf16');
  const scaled = { rope_scaling: { rope_type: 'yarn', factor: 2, truncate: false } };
  t.equal(resolved({ format: 'gguf' }, undefined, scaled), '/format export_unsupported safetensors');
  t.equal(resolved({ format: 'gguf_lora' }, {}, scaled), '/format export_unsupported peft');
});

t.test('adapters alone', async (t) => {
  t.equal(resolved({ format: 'gguf_lora', dtype: 'fp32' }, {}), 'gguf_lora fp32');
  t.equal(resolved({ format: 'gguf_lora', dtype: 'q8_0' }, {}), '/dtype export_unsupported bf16');
  t.equal(resolved({ format: 'gguf_lora' }, { type: 'dora' }), '/format export_unsupported gguf');
  t.equal(
    resolved({ format: 'gguf_lora' }, { modules_to_save: ['norm'] }),
    '/format export_unsupported gguf',
  );
  t.equal(resolved({ format: 'peft_folded' }, { rank_stabilized: true }), 'peft_folded bf16');
  t.equal(resolved({ format: 'peft_folded' }, {}), '/format field_without_effect peft');
  for (const format of ['peft', 'peft_folded', 'gguf_lora'] as const)
    t.equal(resolved({ format }), '/format adapter_missing safetensors');
});
