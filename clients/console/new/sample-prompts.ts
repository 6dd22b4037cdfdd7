/** The prompts that checkpoints answer, as a text with a line for each. */
import type { Dataset } from '../../../contracts/types.js';
import { type Draft, isObject, valueAt, withDataset, withValue } from './draft.js';
import { PATHS } from './fields.js';

/** Returns the prompts of a draft as lines; null if a line cannot say one, such as a chat of several messages. */
export function promptLines(draft: Draft): string | null {
  const prompts = valueAt(draft, PATHS.prompts) ?? [];
  if (!Array.isArray(prompts)) return null;
  const lines = prompts.map(lineOf);
  return lines.every((line) => line !== null) ? lines.join('\n') : null;
}

/** @param isChat whether the lines are questions of a user, otherwise they are texts to continue */
export function withPromptLines(draft: Draft, text: string, isChat: boolean): Draft {
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  // The options of answers are refused without prompts.
  if (lines.length === 0) return withValue(draft, ['checkpoint', 'samples'], undefined);
  const prompts = lines.map((line) =>
    isChat ? { messages: [{ role: 'user', content: line }] } : { prompt: line },
  );
  return withValue(draft, PATHS.prompts, prompts);
}

/** Chooses a dataset. Prompts are questions if it has chats, otherwise texts to continue. */
export function withData(draft: Draft, dataset: Dataset): Draft {
  const lines = promptLines(draft);
  const chosen = withDataset(draft, dataset);
  return lines === null ? chosen : withPromptLines(chosen, lines, dataset.num_chats > 0);
}

function lineOf(given: unknown): string | null {
  if (!isObject(given)) return null;
  const { prompt, messages, ...rest } = given;
  const [message, ...others] = Array.isArray(messages) ? messages : [{ role: 'user', content: prompt }];
  const { role, content, ...more } = isObject(message) ? message : {};
  const isPlain =
    role === 'user' && [others, Object.keys(rest), Object.keys(more)].every(({ length }) => length === 0);
  return isPlain && typeof content === 'string' && !content.includes('\n') ? content : null;
}
