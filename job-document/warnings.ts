/**
 * Warnings about accepted documents. They depend on the document alone, so that a repeated request gets the
 * same ones.
 */

import type { JobSpec, Model, Warning } from '../contracts/index.js';
import { importDeepspeed } from './deepspeed/import.js';
import { importConfig } from './model/import.js';

/** @param document an accepted document */
export function jobWarnings(document: JobSpec): Warning[] {
  const { config } = document.model;
  return [
    ...importDeepspeed(document).warnings,
    ...(config === undefined ? [] : configWarnings(config, '/model/config')),
  ];
}

/** Returns warnings with pointers into the model. */
export function modelWarnings({ config, model_type, unread_tokenizer = [] }: Model): Warning[] {
  return [
    ...(model_type === null ? [] : configWarnings(config, '/config')),
    ...unread_tokenizer.map(
      (name, i): Warning => ({
        pointer: `/unread_tokenizer/${i}`,
        code: 'tokenizer_not_read',
        message: `${name} is kept for exports, but only tokenizer.json is read: a job has to name another data.tokenizer, or bytes`,
      }),
    ),
  ];
}

/** Counts of prepared texts, of which some may not teach what their writer wants. */
interface TextCounts {
  documents: number;
  without_stop_token: number;
  with_two_begins: number;
}

/** Returns warnings about the texts of a dataset. */
export function dataWarnings({ documents, without_stop_token, with_two_begins }: TextCounts): Warning[] {
  const warnings: Warning[] = [];
  const share = (count: number) => `${count} of ${documents} texts`;
  if (without_stop_token > 0)
    warnings.push({
      pointer: '/data/chat_template',
      code: 'no_stop_token',
      message:
        `in ${share(without_stop_token)} no token that ends an answer is learned, so the model does not learn to stop: write the end of the turn inside of ` +
        "{% generation %}, as a special token of the tokenizer or as the tokenizer's end-of-sequence token",
    });
  if (with_two_begins > 0)
    warnings.push({
      pointer: '/data/dataset',
      code: 'repeated_begin',
      message:
        `${share(with_two_begins)} begin with the token that the tokenizer puts before each text, so the model reads it twice: leave it out of the texts, ` +
        'and set data.parse_special_tokens: true if they have other special tokens',
    });
  return warnings;
}

function configWarnings(config: Readonly<Record<string, unknown>>, at: string): Warning[] {
  return importConfig(config).warnings.map((warning) => ({ ...warning, pointer: at + warning.pointer }));
}
