import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { BytesTokenizer } from '../../formats/encoding/bytes-tokenizer.js';
import { HfTokenizer } from '../../formats/encoding/hf-tokenizer.js';
import type { PromptTokenizer } from '../../formats/encoding/prompt-tokenizer.js';
import {
  SPECIAL_TOKENS_FILE,
  TOKENIZER_CONFIG_FILE,
  TOKENIZER_FILE,
} from '../../formats/models/documents.js';
import { drawAnswer, GREEDY } from '../../native/js/index.js';
import { usableCores } from '../../platform/process/usable-cores.js';
import { loadEngine } from './model-folder.js';

export interface SampleTextOptions {
  prompt: string;
  /** Maximum number of tokens to add to the prompt. */
  max_tokens: number;
  /** 0 always takes the most likely token. */
  temperature: number;
  /** Samples from the k most likely tokens; 0 keeps all. */
  top_k?: number;
  /** Further restricts sampling to the fewest tokens whose probabilities reach this sum; 1 keeps all. */
  top_p?: number;
  seed: number;
}

/**
 * Continues a text with a model. The same seed gives the same text.
 * @param dir a Hugging Face model folder, such as a job's export; without a tokenizer.json a token is a byte
 * @returns the prompt and the generated text; bytes that are not UTF-8 show as U+FFFD
 */
export async function sampleText(dir: string, options: SampleTextOptions): Promise<string> {
  const { prompt, ...rest } = options;
  const tokenizer = await openTokenizer(dir);
  const engine = await loadEngine(dir, usableCores());
  try {
    const tokens = tokenizer.encodePrompt(prompt);
    const { vocabSize: numTokens, end } = tokenizer;
    const endTokens = end === null ? [] : [end];
    const added = await drawAnswer(engine, tokens, {
      ...GREEDY,
      ...rest,
      num_tokens: numTokens,
      end_tokens: endTokens,
    });
    return prompt + tokenizer.decodeAfter(tokens, added);
  } finally {
    engine.close();
  }
}

async function openTokenizer(dir: string): Promise<PromptTokenizer> {
  const text = (name: string) =>
    readFile(join(dir, name), 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return null;
      throw error;
    });
  const tokenizer = await text(TOKENIZER_FILE);
  if (tokenizer === null) return new BytesTokenizer();
  const config = await text(TOKENIZER_CONFIG_FILE);
  return new HfTokenizer({ tokenizer, config, special_tokens_map: await text(SPECIAL_TOKENS_FILE) }, false);
}
