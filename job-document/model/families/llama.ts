import type { ConfigReader } from '../reader.js';
import { DECODER_PARAMS, decoderArchitecture, readBiases, readDecoder } from './decoder.js';
import type { Family } from './family.js';

/** Draft models for a Qwen have these fields; they are accepted only without a window. */
function refuseWindows(reader: ConfigReader): void {
  const why = 'every layer of this family attends to all previous tokens: remove it';
  reader.only('sliding_window', [], why);
  reader.only('use_sliding_window', [false], why);
  reader.ignore(['max_window_layers']);
}

export const LLAMA: Family<'llama'> = {
  description: 'Llama 2 and 3.',
  causalLm: 'LlamaForCausalLM',
  params: DECODER_PARAMS,
  gguf: { name: 'llama', pairs: true, scalings: ['llama3'] },
  fieldNames: { norm_eps: 'rms_norm_eps' },
  read(reader) {
    refuseWindows(reader);
    return {
      model_type: 'llama',
      ...readDecoder(reader, { max_position_embeddings: 2048, rms_norm_eps: 1e-6, rope_theta: 10_000 }),
      ...readBiases(reader),
    };
  },
  architecture: decoderArchitecture,
};
