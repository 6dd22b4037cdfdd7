/** Chat completions from and to samples. */
import type {
  ChatCompletion,
  ChatCompletionChunk,
  ChatCompletionTokenLogprob,
} from 'openai/resources/chat/completions';
import type { ChatMessage, SampledToken, SampleRequest } from '../../../contracts/index.js';
import { type Static, Type } from '../../../platform/schema.js';
import { lateList } from '../../answers/pieces.js';
import { notSupported } from '../errors.js';
import { nullable, parserOf } from '../pages.js';
import type { Head, Shape } from './form.js';
import { Common, requireNeutral, samplingOf, strict, tokens } from './options.js';

const anything = Type.Optional(Type.Unsafe<unknown>());
/** Parameters that are taken with the values that have no effect. */
const NEUTRAL = {
  modalities: ['text'],
  response_format: { type: 'text' },
  store: false,
  tools: [],
  tool_choice: 'none',
  functions: [],
  function_call: 'none',
  audio: null,
  prediction: null,
  reasoning_effort: null,
  verbosity: null,
  web_search_options: null,
};
/** Parameters that change no answer. */
const WITHOUT_EFFECT = [
  'metadata',
  'parallel_tool_calls',
  'prompt_cache_key',
  'safety_identifier',
  'service_tier',
];

const Body = Type.Object(
  {
    ...Common,
    messages: Type.Array(Type.Record(Type.String(), Type.Unsafe<unknown>()), { minItems: 1, maxItems: 1000 }),
    max_tokens: tokens,
    max_completion_tokens: tokens,
    logprobs: nullable(Type.Boolean()),
    top_logprobs: nullable(Type.Integer({ minimum: 0, maximum: 20 })),
    ...Object.fromEntries([...Object.keys(NEUTRAL), ...WITHOUT_EFFECT].map((name) => [name, anything])),
  },
  strict,
);
export type ChatBody = Static<typeof Body>;

export const parseChat = parserOf(Body);

/** @throws Refusal for what is not supported */
export function chatSample(body: ChatBody): Omit<SampleRequest, 'stream'> {
  requireNeutral(body, NEUTRAL);
  const { messages, max_tokens, max_completion_tokens, logprobs, top_logprobs } = body;
  if (logprobs !== true && top_logprobs != null)
    throw notSupported('top_logprobs', 'top_logprobs needs logprobs: true');
  return {
    messages: messages.map(messageOf),
    ...samplingOf(body, max_completion_tokens ?? max_tokens),
    logprobs: logprobs === true ? (top_logprobs ?? 0) : null,
  };
}

const ROLES: Readonly<Record<string, string>> = {
  system: 'system',
  developer: 'system',
  user: 'user',
  assistant: 'assistant',
};

function messageOf(message: Record<string, unknown>, index: number): ChatMessage {
  const { role, content, name: _, refusal: __, ...others } = message;
  const at = `messages[${index}]`;
  const known = ROLES[String(role)];
  if (known === undefined) throw notSupported('messages', `${at}.role ${role} is not supported`);
  const [other] = Object.entries(others).filter(([, value]) => value != null);
  if (other !== undefined) throw notSupported('messages', `${at}.${other[0]} is not supported`);
  return { role: known, content: textOf(content, `${at}.content`) };
}

function textOf(content: unknown, at: string): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content))
    throw notSupported('messages', `${at} must be a text, or parts of the type text`);
  return content
    .map((part: { type?: unknown; text?: unknown } | null) => {
      if (part?.type === 'text' && typeof part.text === 'string') return part.text;
      throw notSupported('messages', `${at}: parts of the type ${part?.type} are not supported`);
    })
    .join('');
}

const logprobsOf = (tokens: readonly SampledToken[]) => ({
  content: lateList(function* () {
    for (const token of tokens) yield logprobOf(token);
  }),
  refusal: null,
});

function logprobOf({ top, ...token }: SampledToken): ChatCompletionTokenLogprob {
  return { ...token, top_logprobs: top };
}

export const chatShape: Shape<ChatCompletion, ChatCompletionChunk> = {
  id: 'chatcmpl',
  whole: (head, { choices, usage }, has_logprobs) => ({
    ...head,
    object: 'chat.completion',
    choices: choices.map(({ index, text, finish_reason, logprobs }) => ({
      index,
      message: { role: 'assistant', content: text, refusal: null },
      finish_reason,
      logprobs: has_logprobs ? logprobsOf(logprobs) : null,
    })),
    usage,
  }),
  first: (head, index) => chunk(head, { index, delta: { role: 'assistant', content: '', refusal: null } }),
  delta: (head, { index, text, logprobs }, has_logprobs) =>
    chunk(head, { index, delta: { content: text }, ...(has_logprobs && { logprobs: logprobsOf(logprobs) }) }),
  last: (head, { index, finish_reason }) => chunk(head, { index, delta: {}, finish_reason }),
  usage: (head, usage) => ({ ...head, object: 'chat.completion.chunk', choices: [], usage }),
};

type Choice = ChatCompletionChunk['choices'][number];

function chunk(head: Head, choice: Pick<Choice, 'index' | 'delta'> & Partial<Choice>): ChatCompletionChunk {
  return {
    ...head,
    object: 'chat.completion.chunk',
    choices: [{ finish_reason: null, logprobs: null, ...choice }],
  };
}
