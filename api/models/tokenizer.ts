import { Tokenizer } from '@huggingface/tokenizers';
import { type Model, ZerofleetError } from '../../contracts/index.js';
import { chatTemplateOf, vocabSizeOf } from '../../platform/models/tokenizer.js';

/** The files of a tokenizer, as far as they came. */
export interface TokenizerDocuments {
  /** tokenizer.json */
  tokenizer: Record<string, unknown>;
  /** tokenizer_config.json */
  config?: Record<string, unknown>;
  /** chat_template.jinja */
  template?: string;
}

/**
 * Checks that texts can be read with a tokenizer. Its chat template is not checked: a job may bring another one.
 * @throws ZerofleetError `tokenizer_invalid`
 */
export function describeTokenizer({
  tokenizer,
  config = {},
  template,
}: TokenizerDocuments): Model['tokenizer'] {
  // Before the library sees the ids: it makes tables of their size.
  const vocab_size = vocabSizeOf(tokenizer);
  try {
    new Tokenizer(tokenizer, config);
  } catch (error) {
    const reason = (error as Error).message.slice(0, 200);
    throw new ZerofleetError('tokenizer_invalid', `tokenizer.json can't be used: ${reason}`);
  }
  return { vocab_size, chat_template: chatTemplateOf(config, template) };
}
