/** Answers in the shapes of the translated API, whole or as server-sent events. */
import { randomUUID } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { CompletionUsage } from 'openai/resources/completions';
import type { Zerofleet } from '../../../clients/typescript/index.js';
import type { Sample, SampleChoice, SampleDelta, SampleRequest } from '../../../contracts/index.js';
import { sendJson } from '../../answers/json-pieces.js';
import { numReported } from '../../answers/reported-tokens.js';
import { clientLeft, onClosed, whileSilent } from '../../http/long-request.js';
import { sendEvents, withHeartbeats, within } from '../../http/sse.js';
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
export interface Shape<Answer extends object, Chunk extends object> {
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
export async function sendAnswer<Answer extends object, Chunk extends object>(
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
  onClosed(reply, () => gone.abort(clientLeft()));
  const wants = sample.logprobs !== null;
  const { heartbeat_ms } = asked.server.services.limits;
  // As a stream, too, for a whole answer: only a stream can be left before its end.
  const begin = () => api.samples.begin(answering, sample, { signal: gone.signal });
  if (!stream) {
    const answer = await whileSilent(asked, reply, async () => wholeOf(await begin()));
    const whole = shape.whole(head, { ...answer, usage: usageOf(answer) }, wants);
    return sendJson(reply, whole, numReported(answer));
  }
  const growing = await whileSilent(asked, reply, async () => {
    const deltas = await begin();
    const first = deltas.next();
    // What is refused is refused before the first text. A long prompt may be read for longer than a connection may be silent.
    await within(heartbeat_ms, first);
    return { deltas, first };
  });
  const messages = messagesOf({ head, shape, wants, request, asked }, growing);
  return sendEvents(reply, withHeartbeats(messages, heartbeat_ms));
}

/** Texts as they come, of which the first one was asked for. */
interface Growing {
  deltas: AsyncGenerator<SampleDelta, Sample>;
  first: Promise<IteratorResult<SampleDelta, Sample>>;
}

async function wholeOf(deltas: Growing['deltas']): Promise<Sample> {
  for (;;) {
    const { done, value } = await deltas.next();
    if (done) return value;
  }
}

interface Telling<Answer extends object, Chunk extends object> {
  head: Head;
  shape: Shape<Answer, Chunk>;
  wants: boolean;
  request: AnswerRequest;
  asked: FastifyRequest;
}

async function* messagesOf<Answer extends object, Chunk extends object>(
  { head, shape, wants, request, asked }: Telling<Answer, Chunk>,
  { deltas, first }: Growing,
): AsyncGenerator<string> {
  const message = (data: unknown) => `data: ${JSON.stringify(data)}\n\n`;
  // Where the usage comes last, all other chunks say that they have none.
  const chunk = (part: Chunk) => message(request.include_usage ? { ...part, usage: null } : part);
  try {
    for (let index = 0; index < (request.sample.n ?? 1); index++) {
      const before = shape.first(head, index);
      if (before !== null) yield chunk(before);
    }
    let result = await first;
    for (; !result.done; result = await deltas.next()) yield chunk(shape.delta(head, result.value, wants));
    for (const choice of result.value.choices) yield chunk(shape.last(head, choice));
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
