import { readRope } from '../rope.js';
import type { Family } from './family.js';
import { GEMMA_FIELDS, GEMMA_PARAMS, gemmaArchitecture, readGemma, unsupportedGemma } from './gemma.js';
import { LIMITS } from './limits.js';

const THETA = 10_000;

export const GEMMA2: Family<'gemma2'> = {
  description: "Gemma 2, with soft caps of attention's scores and of the logits.",
  causalLm: 'Gemma2ForCausalLM',
  params: GEMMA_PARAMS,
  gguf: { name: 'gemma2', unsupported: (model) => unsupportedGemma(model, { period: 2, largest: 46 }) },
  fields: {
    ...GEMMA_FIELDS,
    attn_logit_softcapping: { description: "Soft cap of attention's scores; null: none." },
    final_logit_softcapping: { description: 'Soft cap of the logits; null: none.' },
  },
  fieldNames: { norm_eps: 'rms_norm_eps' },
  read(reader) {
    const softCap = (name: string, fallback: number) =>
      reader.numberOrNull(name, { ...LIMITS.factor, fallback });
    return {
      model_type: 'gemma2',
      ...readGemma(
        reader,
        { max_position_embeddings: 8192, rope_theta: THETA },
        (maxPositions, headDim) => readRope(reader, THETA, maxPositions, headDim),
        (layer) => layer % 2 === 0,
      ),
      attn_logit_softcapping: softCap('attn_logit_softcapping', 50),
      final_logit_softcapping: softCap('final_logit_softcapping', 30),
    };
  },
  architecture(config) {
    return {
      ...gemmaArchitecture(config),
      attention_soft_cap: config.attn_logit_softcapping ?? 0,
      logits_soft_cap: config.final_logit_softcapping ?? 0,
    };
  },
};
