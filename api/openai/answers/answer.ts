/** Answers in the shapes of the translated API, whole or as server-sent events. */
import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { CompletionUsage } from 'openai/resources/completions';
import type { Zerofleet } from '../../../client/index.js';
import type { Sample, SampleChoice, SampleDelta, SampleRequest } from '../../../contracts/index.js';
import { onClosed } from '../../http/long-request.js';
import { describeRefusal } from '../errors.js';

interface Head {
  id: string;
  created: number;
  model: string;
  /** What computes the answer: with the same one and a seed, answers repeat. */
  system_fingerprint: string;
}

type Whole = Pick<Sample, 'choices'> & { usage: CompletionUsage };

/** How an answer looks. `wants`: the request asked for log-probabilities. */
export interface Shape<Answer, Chunk> {
  /** Beginning of ids. */
  id: string;
  whole(head: Head, answer: Whole, wants: boolean): Answer;
  /** Before the first text of a choice; null: nothing. */
  first(head: Head, index: number): Chunk | null;
  delta(head: Head, delta: SampleDelta, wants: boolean): Chunk;
  last(head: Head, choice: SampleChoice): Chunk;
  usage(head: Head, usage: CompletionUsage): Chunk;
}

export interface AnswerRequest {
  /** As the request names it. */
  model: string;
  /** Checkpoint or uploaded model that answers. */
  answering: string;
  sample: Omit<SampleRequest, 'stream'>;
  stream: boolean;
  include_usage: boolean;
}

/** Sends the answer to a request. The sample ends when the client leaves. @throws ApiError before the first text */
export async function sendAnswer<Answer, Chunk>(
  api: Zerofleet,
  request: AnswerRequest,
  shape: Shape<Answer, Chunk>,
  { raw: asked, reply }: { raw: FastifyRequest; reply: FastifyReply },
): Promise<FastifyReply> {
  const { model, answering, sample, stream } = request;
  const head: Head = {
    id: `${shape.id}-${randomUUID()}`,
    created: Math.floor(Date.now() / 1000),
    model,
    system_fingerprint: answering,
  };
  const gone = new AbortController();
  onClosed(reply, () => gone.abort());
  const options = { signal: gone.signal };
  const wants = sample.logprobs !== null;
  // As a stream, too, for a whole answer: only a stream can be left before its end.
  const deltas = api.samples.stream(answering, sample, options);
  const first = await deltas.next();
  if (!stream) {
    let result = first;
    while (!result.done) result = await deltas.next();
    return reply.send(shape.whole(head, { ...result.value, usage: usageOf(result.value) }, wants));
  }
  const messages = messagesOf({ head, shape, wants, request, asked }, deltas, first);
  reply.header('cache-control', 'no-store').header('x-accel-buffering', 'no').type('text/event-stream');
  return reply.send(Readable.from(messages, { objectMode: false, highWaterMark: 16 * 1024 }));
}

interface Telling<Answer, Chunk> {
  head: Head;
  shape: Shape<Answer, Chunk>;
  wants: boolean;
  request: AnswerRequest;
  asked: FastifyRequest;
}

async function* messagesOf<Answer, Chunk>(
  { head, shape, wants, request, asked }: Telling<Answer, Chunk>,
  deltas: AsyncGenerator<SampleDelta, Sample>,
  first: IteratorResult<SampleDelta, Sample>,
): AsyncGenerator<string> {
  const message = (data: unknown) => `data: ${JSON.stringify(data)}\n\n`;
  for (let index = 0; index < (request.sample.n ?? 1); index++) {
    const before = shape.first(head, index);
    if (before !== null) yield message(before);
  }
  try {
    let result = first;
    for (; !result.done; result = await deltas.next()) yield message(shape.delta(head, result.value, wants));
    for (const choice of result.value.choices) yield message(shape.last(head, choice));
    if (request.include_usage) yield message(shape.usage(head, usageOf(result.value)));
    yield 'data: [DONE]\n\n';
  } catch (error) {
    yield message(describeRefusal(error, asked).body);
  } finally {
    await deltas.return(undefined as never).catch(() => undefined);
  }
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
