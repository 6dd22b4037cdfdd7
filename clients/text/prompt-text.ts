import type { ResolvedJobSpec } from '../../contracts/types.js';

export type Prompt = NonNullable<ResolvedJobSpec['checkpoint']['samples']>['prompts'][number];

/** A prompt of a document as text: a chat has a line for each message. */
export const promptText = ({ prompt, messages = [] }: Prompt): string =>
  prompt ?? messages.map(({ role, content }) => `${role}: ${content}`).join('\n');
