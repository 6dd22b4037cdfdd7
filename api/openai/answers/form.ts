/** Answers in the shapes of the translated API. */
import { randomUUID } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import type { CompletionUsage } from 'openai/resources/completions';
import type { Sample, SampleChoice, SampleDelta, SampleRequest } from '../../../contracts/index.js';
import type { AnswerForm } from '../../answers/service.js';
import { describeRefusal } from '../errors.js';

/** Fields of an answer and of each of its chunks. */
export interface Head {
  id: string;
  created: number;
  model: string;
  /** Identifies what computes the answer: with the same value and seed, answers repeat. */
  system_fingerprint: string;
}

type Whole = Pick<Sample, 'choices'> & { usage: CompletionUsage };

/** How an answer looks. `has_logprobs`: the request asked for log-probabilities. */
export interface Shape<Answer extends object = object, Chunk extends object = object> {
  /** Beginning of ids. */
  id: string;
  whole(head: Head, answer: Whole, hasLogprobs: boolean): Answer;
  /** Before the first text of a choice; null: nothing. */
  first(head: Head, index: number): Chunk | null;
  delta(head: Head, delta: SampleDelta, hasLogprobs: boolean): Chunk;
  last(head: Head, choice: SampleChoice): Chunk;
  usage(head: Head, usage: CompletionUsage): Chunk;
}

interface AnsweredRequest {
  request: FastifyRequest;
  /** As the request names it. */
  model: string;
  /** Checkpoint or uploaded model that answers. */
  answering: string;
  sample: SampleRequest;
  include_usage: boolean;
}

/** Returns the encoding of the answer to a request. */
export function formOf(
  shape: Shape,
  { request, model, answering, sample, include_usage }: AnsweredRequest,
): AnswerForm {
  const head: Head = {
    id: `${shape.id}-${randomUUID()}`,
    created: Math.floor(Date.now() / 1000),
    model,
    system_fingerprint: answering,
  };
  const hasLogprobs = sample.logprobs != null;
  const message = (data: unknown) => `data: ${JSON.stringify(data)}\n\n`;
  // Where the usage comes last, all other chunks say that they have none.
  const chunk = (part: object) => message(include_usage ? { ...part, usage: null } : part);
  return {
    whole: (answer) => shape.whole(head, { ...answer, usage: usageOf(answer) }, hasLogprobs),
    *begin() {
      for (let index = 0; index < (sample.n ?? 1); index++) {
        const before = shape.first(head, index);
        if (before !== null) yield chunk(before);
      }
    },
    delta: (delta) => chunk(shape.delta(head, delta, hasLogprobs)),
    *end(answer) {
      for (const choice of answer.choices) yield chunk(shape.last(head, choice));
      if (include_usage) yield message(shape.usage(head, usageOf(answer)));
      yield 'data: [DONE]\n\n';
    },
    error: (error) => message(describeRefusal(error, request).body),
    // The official clients know no error behind the beginning of a stream.
    beginsWithText: true,
  };
}

function usageOf({ usage }: Sample): CompletionUsage {
  const { prompt_tokens, cached_tokens, completion_tokens } = usage;
  return {
    prompt_tokens,
    completion_tokens,
    total_tokens: prompt_tokens + completion_tokens,
    prompt_tokens_details: { cached_tokens },
  };
}
