/** Completions of a text from and to samples. */
import type { Completion, CompletionChoice } from 'openai/resources/completions';
import type { SampleChoice, SampledToken, SampleRequest } from '../../../contracts/index.js';
import { type Static, Type } from '../../../platform/schema.js';
import { lateList } from '../../answers/pieces.js';
import { notSupported } from '../errors.js';
import { nullable, parserOf } from '../pages.js';
import type { Head, Shape } from './form.js';
import { Common, requireNeutral, samplingOf, strict, tokens } from './options.js';

const anything = Type.Optional(Type.Unsafe<unknown>());
const NEUTRAL = {
  best_of: 1,
  echo: false,
  suffix: null,
};
/** The hosted API's default. */
const DEFAULT_TOKENS = 16;

const Body = Type.Object(
  {
    ...Common,
    prompt: Type.Unsafe<unknown>(),
    max_tokens: tokens,
    logprobs: nullable(Type.Integer({ minimum: 0, maximum: 5 })),
    ...Object.fromEntries(Object.keys(NEUTRAL).map((name) => [name, anything])),
  },
  strict,
);
type CompletionBody = Static<typeof Body>;

export const parseCompletion = parserOf(Body);

/** @throws Refusal for what is not supported */
export function completionSample(body: CompletionBody): Omit<SampleRequest, 'stream'> {
  requireNeutral(body, NEUTRAL);
  const { prompt, max_tokens, logprobs } = body;
  const [only, ...others] = Array.isArray(prompt) ? prompt : [prompt];
  if (typeof only !== 'string' || only === '' || others.length > 0)
    throw notSupported('prompt', 'prompt must be one text; send a request for each of several');
  return { prompt: only, ...samplingOf(body, max_tokens ?? DEFAULT_TOKENS), logprobs: logprobs ?? null };
}

function logprobsOf(tokens: readonly SampledToken[]): CompletionChoice.Logprobs {
  return {
    tokens: lateList(function* () {
      for (const token of tokens) yield nameOf(token);
    }),
    token_logprobs: lateList(function* () {
      for (const { logprob } of tokens) yield logprob;
    }),
    top_logprobs: lateList(function* () {
      for (const { top } of tokens)
        yield Object.fromEntries(top.map((token) => [nameOf(token), token.logprob]));
    }),
    text_offset: lateList(function* () {
      let at = 0;
      for (const { token } of tokens) {
        yield at;
        at += token.length;
      }
    }),
  };
}

/** Returns the text of a token, or its bytes if it is a part of a character, as the hosted API does. */
function nameOf({ token, bytes }: Pick<SampledToken, 'token' | 'bytes'>): string {
  if (!token.includes('\uFFFD') || Buffer.from(token).equals(Uint8Array.from(bytes))) return token;
  return `bytes:${bytes.map((byte) => `\\x${byte.toString(16).padStart(2, '0')}`).join('')}`;
}

export const completionShape: Shape<Completion, Completion> = {
  id: 'cmpl',
  whole: (head, { choices, usage }, hasLogprobs) => ({
    ...head,
    object: 'text_completion',
    choices: choices.map(({ index, text, finish_reason, logprobs }) => ({
      index,
      text,
      finish_reason: reasonOf(finish_reason),
      logprobs: hasLogprobs ? logprobsOf(logprobs) : null,
    })),
    usage,
  }),
  first: () => null,
  delta: (head, { index, text, logprobs }, hasLogprobs) =>
    chunk(head, { index, text, ...(hasLogprobs && { logprobs: logprobsOf(logprobs) }) }),
  last: (head, { index, finish_reason }) =>
    chunk(head, { index, text: '', finish_reason: reasonOf(finish_reason) }),
  usage: (head, usage) => ({ ...head, object: 'text_completion', choices: [], usage }),
};

/** A text has no calls of tools. */
function reasonOf(reason: SampleChoice['finish_reason']): CompletionChoice['finish_reason'] {
  return reason === 'tool_calls' ? 'stop' : reason;
}

type Choice = Pick<CompletionChoice, 'index' | 'text'> & Partial<CompletionChoice>;

/** A choice that goes on has no reason yet, which the client's type of chunks leaves out. */
function chunk(head: Head, choice: Choice): Completion {
  const whole = { logprobs: null, finish_reason: null, ...choice } as unknown as CompletionChoice;
  return { ...head, object: 'text_completion', choices: [whole] };
}
