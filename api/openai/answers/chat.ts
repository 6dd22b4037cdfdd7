/** Chat completions from and to samples. */
import type {
  ChatCompletion,
  ChatCompletionChunk,
  ChatCompletionMessage,
  ChatCompletionTokenLogprob,
} from 'openai/resources/chat/completions';
import type {
  ChatMessage,
  SampleChoice,
  SampledToken,
  SampleRequest,
  Tool,
} from '../../../contracts/index.js';
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
  store: false,
  functions: [],
  function_call: 'none',
  audio: null,
  prediction: null,
  reasoning_effort: null,
  verbosity: null,
  web_search_options: null,
};
/** Parameters that change no answer. */
const WITHOUT_EFFECT = ['metadata', 'prompt_cache_key', 'safety_identifier', 'service_tier'];

const Body = Type.Object(
  {
    ...Common,
    tools: nullable(Type.Array(Type.Unsafe<Tool>())),
    tool_choice: nullable(Type.Unsafe<NonNullable<SampleRequest['tool_choice']>>()),
    parallel_tool_calls: nullable(Type.Boolean()),
    response_format: nullable(Type.Unsafe<NonNullable<SampleRequest['response_format']>>()),
    messages: Type.Unsafe<ChatMessage[]>(),
    max_tokens: tokens,
    max_completion_tokens: tokens,
    logprobs: nullable(Type.Boolean()),
    top_logprobs: nullable(Type.Integer({ minimum: 0, maximum: 20 })),
    ...Object.fromEntries([...Object.keys(NEUTRAL), ...WITHOUT_EFFECT].map((name) => [name, anything])),
  },
  strict,
);
type ChatBody = Static<typeof Body>;

export const parseChat = parserOf(Body);

/** @throws Refusal for what is not supported */
export function chatSample(body: ChatBody): Omit<SampleRequest, 'stream'> {
  requireNeutral(body, NEUTRAL);
  const { messages, tools, tool_choice, parallel_tool_calls, response_format } = body;
  const { max_tokens, max_completion_tokens, logprobs, top_logprobs } = body;
  if (logprobs !== true && top_logprobs != null)
    throw notSupported('top_logprobs', 'top_logprobs needs logprobs: true');
  return {
    messages,
    ...(tools != null && { tools }),
    ...(tool_choice != null && { tool_choice }),
    ...(parallel_tool_calls != null && { parallel_tool_calls }),
    ...(response_format != null && { response_format }),
    ...samplingOf(body, max_completion_tokens ?? max_tokens),
    logprobs: logprobs === true ? (top_logprobs ?? 0) : null,
  };
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
  whole: (head, { choices, usage }, hasLogprobs) => ({
    ...head,
    object: 'chat.completion',
    choices: choices.map(({ index, text, tool_calls, finish_reason, logprobs }) => ({
      index,
      message: messageOfChoice(text, tool_calls),
      finish_reason,
      logprobs: hasLogprobs ? logprobsOf(logprobs) : null,
    })),
    usage,
  }),
  first: (head, index) => chunk(head, { index, delta: { role: 'assistant', content: '', refusal: null } }),
  delta: (head, { index, text, tool_calls, logprobs }, hasLogprobs) =>
    chunk(head, {
      index,
      delta: { ...(text !== '' || !tool_calls ? { content: text } : {}), ...(tool_calls && { tool_calls }) },
      ...(hasLogprobs && { logprobs: logprobsOf(logprobs) }),
    }),
  last: (head, { index, finish_reason }) => chunk(head, { index, delta: {}, finish_reason }),
  usage: (head, usage) => ({ ...head, object: 'chat.completion.chunk', choices: [], usage }),
};

function messageOfChoice(text: string, toolCalls: SampleChoice['tool_calls']): ChatCompletionMessage {
  const content = text === '' && toolCalls ? null : text;
  return { role: 'assistant', content, refusal: null, ...(toolCalls && { tool_calls: toolCalls }) };
}

type Choice = ChatCompletionChunk['choices'][number];

function chunk(head: Head, choice: Pick<Choice, 'index' | 'delta'> & Partial<Choice>): ChatCompletionChunk {
  return {
    ...head,
    object: 'chat.completion.chunk',
    choices: [{ finish_reason: null, logprobs: null, ...choice }],
  };
}
