import { availableParallelism } from 'node:os';
import { loadSampler } from './model-folder.js';

export interface SampleTextOptions {
  prompt: string;
  /** How many bytes to add to the prompt. */
  max_bytes: number;
  /** 0 takes the most likely byte each time. */
  temperature: number;
  /** Draw among the k most likely bytes; 0 keeps all. */
  top_k?: number;
  /** And of those among the fewest whose probabilities add up to this; 1 keeps all. */
  top_p?: number;
  seed: number;
}

/**
 * Lets a model that was trained with the `bytes` tokenizer go on with a text. The same seed gives the same text.
 * @param dir a Hugging Face model folder, such as a job's export
 * @returns the prompt and what the model added; bytes that are not UTF-8 show as U+FFFD
 */
export async function sampleText(dir: string, options: SampleTextOptions): Promise<string> {
  const { prompt, max_bytes, temperature, top_k = 0, top_p = 1, seed } = options;
  const sampler = await loadSampler(dir, availableParallelism());
  try {
    const tokens = [...Buffer.from(prompt)];
    const added = await sampler.sample(tokens, {
      max_tokens: max_bytes,
      temperature,
      top_k,
      top_p,
      num_tokens: 256,
      end_token: -1,
      seed,
    });
    return Buffer.from([...tokens, ...added]).toString('utf8');
  } finally {
    sampler.close();
  }
}
