/** What the fields of a dataset's lines become, in words. */
import { isObject } from './draft.js';

interface Form {
  kind: string;
  fields: { name: string; becomes: string }[];
  /** Fields that no job reads. */
  ignored: string[];
}

type Roles = Readonly<Record<string, string>>;

/** What else some chats have. */
const OF_CHATS: Roles = { tools: 'tools', functions: 'tools', parallel_tool_calls: 'tools' };
/** Earlier turns of public forms. */
const OF_PUBLIC: Roles = { system: 'system message', history: 'earlier turns' };

/** Forms by the field that only they have, in the order in which lines are recognized (contracts/jsonl/line.ts). */
const FORMS: readonly { by: string; kind: string; roles: Roles }[] = [
  { by: 'text', kind: 'texts', roles: { text: 'text' } },
  { by: 'messages', kind: 'chats', roles: { messages: 'turns', ...OF_CHATS } },
  {
    by: 'chosen',
    kind: 'preferences',
    roles: { prompt: 'prompt', chosen: 'preferred answer', rejected: 'other answer', ...OF_CHATS },
  },
  {
    by: 'preferred_output',
    kind: 'preferences',
    roles: {
      input: 'prompt',
      preferred_output: 'preferred answer',
      non_preferred_output: 'other answer',
    },
  },
  {
    by: 'completion',
    kind: 'prompts with completions',
    roles: { prompt: 'prompt', completion: 'what is learned', label: 'whether it is desirable', ...OF_CHATS },
  },
  {
    by: 'instruction',
    kind: 'chats',
    roles: {
      instruction: 'user',
      input: 'user',
      context: 'user',
      output: 'assistant',
      response: 'assistant',
      ...OF_PUBLIC,
    },
  },
  {
    by: 'question',
    kind: 'chats',
    roles: { question: 'user', context: 'user', answer: 'assistant', response: 'assistant', ...OF_PUBLIC },
  },
  {
    by: 'conversations',
    kind: 'chats',
    roles: { conversations: 'turns', system: 'system message', ...OF_CHATS },
  },
  { by: 'prompt', kind: 'prompts', roles: { prompt: 'prompt', ...OF_CHATS } },
];

/** What the fields of answers become. */
const ANSWERS: readonly string[] = ['assistant', 'what is learned', 'preferred answer', 'other answer'];

export const isAnswer = ({ becomes }: Form['fields'][number]) => ANSWERS.includes(becomes);

/** Returns a form as reinforcement learning reads it: it samples the answers, and graders read every field. */
export const promptsOf = ({ fields }: Form): Form => ({
  kind: 'prompts',
  fields: fields.filter((field) => !isAnswer(field)),
  ignored: [],
});

/** @param documents JSON of the first documents @returns null if the first one has no known form */
export function formOf(documents: readonly string[]): Form | null {
  const first = documents.map(parsed).find((document) => document !== null);
  const names = Object.keys(first ?? {});
  const form = FORMS.find(({ by }) => names.includes(by));
  if (form === undefined) return null;
  const roleOf = (name: string) => form.roles[name];
  return {
    kind: form.kind,
    fields: names.flatMap((name) => {
      const becomes = roleOf(name);
      return becomes === undefined ? [] : [{ name, becomes }];
    }),
    ignored: names.filter((name) => roleOf(name) === undefined),
  };
}

/** An object of JSON; null for anything else. */
export function parsed(document: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(document);
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}
