import type { FieldError, ResolvedJobSpec } from '../../contracts/index.js';
import { fieldError } from '../common/field-error.js';
import { type DataSources, isUnknown } from './tokenizer.js';

/** Checks that the chats among the prompts have a template. */
export function checkSamples(
  { checkpoint, data }: Pick<ResolvedJobSpec, 'checkpoint' | 'data'>,
  sources: DataSources,
): FieldError[] {
  if (data.chat_template !== null || sources.datasets.includes(null) || isUnknown(data, sources)) return [];
  const message = 'the data has no chats, so there is no chat template for messages; write a prompt';
  return (checkpoint.samples?.prompts ?? []).flatMap(({ messages }, index) =>
    messages === undefined
      ? []
      : [fieldError(`/checkpoint/samples/prompts/${index}/messages`, 'chat_template_missing', message)],
  );
}
