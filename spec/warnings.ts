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

function configWarnings(config: Readonly<Record<string, unknown>>, at: string): Warning[] {
  return importConfig(config).warnings.map((warning) => ({ ...warning, pointer: at + warning.pointer }));
}
