import { DECODER_PARAMS, decoderArchitecture, readBiases, readDecoder } from './decoder.js';
import type { Family } from './family.js';
import { LIMITS } from './limits.js';

/** Granite 3, dense: a Llama with four factors. */
export const GRANITE: Family<'granite'> = {
  description: 'Granite 3, dense.',
  causalLm: 'GraniteForCausalLM',
  params: DECODER_PARAMS,
  gguf: { name: 'granite', pairs: true },
  fields: {
    embedding_multiplier: { description: 'Factor of the embeddings of tokens.' },
    attention_multiplier: { description: "Factor of attention's scores." },
    residual_multiplier: { description: 'Factor of the outputs of attention and MLP.' },
    logits_scaling: { description: 'Divisor of the logits.' },
  },
  fieldNames: { norm_eps: 'rms_norm_eps' },
  read(reader) {
    const factor = (name: string) => reader.number(name, { ...LIMITS.factor, fallback: 1 });
    return {
      model_type: 'granite',
      ...readDecoder(reader, { max_position_embeddings: 2048, rms_norm_eps: 1e-6, rope_theta: 10_000 }),
      ...readBiases(reader),
      embedding_multiplier: factor('embedding_multiplier'),
      attention_multiplier: factor('attention_multiplier'),
      residual_multiplier: factor('residual_multiplier'),
      logits_scaling: factor('logits_scaling'),
    };
  },
  architecture(config) {
    return {
      ...decoderArchitecture(config),
      embedding_scale: config.embedding_multiplier,
      attention_scale: config.attention_multiplier,
      residual_scale: config.residual_multiplier,
      // The field is a divisor.
      logits_scale: 1 / config.logits_scaling,
    };
  },
};
