import { type Model, ZerofleetError } from '../../contracts/index.js';
import { unreadTokenizer } from '../../formats/models/documents.js';
import { chatTemplateOf, vocabSizeOf } from '../../formats/models/tokenizer.js';
import { Tokenizer } from '../../formats/tokenizer/tokenizer.js';

/** Equal to the limit of `data.chat_template`: records of models and jobs contain it. */
const MAX_TEMPLATE_LENGTH = 100_000;

/** Files of a tokenizer that have arrived. */
export interface TokenizerDocuments {
  /** tokenizer.json */
  tokenizer: Record<string, unknown>;
  /** tokenizer_config.json */
  config?: Record<string, unknown>;
  /** chat_template.jinja */
  template?: string;
}

/**
 * Checks that the tokenizer can encode text. Its chat template is not checked: a job may override it.
 * @throws ZerofleetError `tokenizer_invalid`
 */
export function describeTokenizer({
  tokenizer,
  config = {},
  template,
}: TokenizerDocuments): NonNullable<Model['tokenizer']> {
  const vocabSize = vocabSizeOf(tokenizer);
  // A tokenizer that would encode differently from the Hugging Face library is refused here.
  new Tokenizer(tokenizer);
  const chatTemplate = chatTemplateOf(config, template);
  if (chatTemplate !== null && chatTemplate.length > MAX_TEMPLATE_LENGTH)
    throw invalid(
      `the chat template has ${chatTemplate.length} characters, at most ${MAX_TEMPLATE_LENGTH} are kept`,
    );
  return { vocab_size: vocabSize, chat_template: chatTemplate };
}

/** For the record of a model: its vocabularies, where they are not read. */
export function unreadIn(names: readonly string[]): Pick<Model, 'unread_tokenizer'> {
  const unread = unreadTokenizer(names);
  return unread.length === 0 ? {} : { unread_tokenizer: unread };
}

function invalid(reason: string): ZerofleetError {
  return new ZerofleetError('tokenizer_invalid', reason);
}
