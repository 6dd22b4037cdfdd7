import { type EventSourceMessage, EventSourceParserStream } from 'eventsource-parser/stream';
import type { Problem, Sample, SampleChoice, SampleDelta, SampleRequest } from '../../contracts/types.js';
import { cancellable } from './cancellable.js';
import { ApiError, ConnectionError } from './errors.js';
import { bodyOf, type Http } from './transport.js';

type Asked = Omit<SampleRequest, 'stream'>;

/** Where a sample is requested. */
export interface SampleOptions {
  /** Pool of the worker that answers for an uploaded model. A checkpoint is answered for by the pool of its job. */
  pool?: string;
  signal?: AbortSignal;
}

/** Texts of checkpoints and uploaded models. */
export class Samples {
  constructor(private readonly http: Http) {}

  /** Generates text with the model of a checkpoint, or with an uploaded model. @param model id of either */
  async create(model: string, body: Asked, options: SampleOptions = {}): Promise<Sample> {
    return (await bodyOf(`sample of ${model}`, request(this.http, model, body, options))) as Sample;
  }

  /**
   * Generates text, and yields it as it grows. The connection is closed when the consumer leaves, which ends the
   * generation.
   * @returns the whole sample
   * @throws ApiError, also for an error behind the first text; ConnectionError when the connection breaks
   */
  stream(model: string, body: Asked, options: SampleOptions = {}): AsyncGenerator<SampleDelta, Sample> {
    const begin = (signal: AbortSignal) => this.begin(model, body, { ...options, signal });
    return cancellable(async function* (signal) {
      return yield* await begin(signal);
    }, options.signal);
  }

  /** The same, resolved when a worker has begun with the answer. @throws ApiError; ConnectionError */
  async begin(
    model: string,
    body: Asked,
    options: SampleOptions = {},
  ): Promise<AsyncGenerator<SampleDelta, Sample>> {
    const name = `sample of ${model}`;
    const stream = await bodyOf(name, request(this.http, model, { ...body, stream: true }, options));
    const events = (stream as unknown as ReadableStream<Uint8Array<ArrayBuffer>>)
      .pipeThrough(new TextDecoderStream())
      .pipeThrough(new EventSourceParserStream())
      .getReader();
    return cancellable((signal) => deltasOf(name, events, signal), options.signal);
  }
}

function request(http: Http, model: string, body: SampleRequest, { pool, signal }: SampleOptions) {
  if (!model.startsWith('mdl_'))
    return http.POST('/v1/checkpoints/{checkpoint_id}/sample', {
      params: { path: { checkpoint_id: model } },
      body,
      signal,
      parseAs: body.stream ? 'stream' : 'json',
    });
  return http.POST('/v1/models/{model_id}/sample', {
    params: { path: { model_id: model }, ...(pool !== undefined && { query: { pool } }) },
    body,
    signal,
    parseAs: body.stream ? 'stream' : 'json',
  });
}

async function* deltasOf(
  name: string,
  events: ReadableStreamDefaultReader<EventSourceMessage>,
  signal: AbortSignal,
): AsyncGenerator<SampleDelta, Sample> {
  const received = new Map<number, Received>();
  const leave = () => void events.cancel().catch(() => undefined);
  if (signal.aborted) leave();
  signal.addEventListener('abort', leave, { once: true });
  try {
    for (;;) {
      const { value, done } = await events.read();
      signal.throwIfAborted();
      if (done) break;
      const data = JSON.parse(value.data);
      if (value.event === 'end') return wholeOf(data as SampleEnd, received);
      if (value.event === 'error') throw new ApiError((data as Problem).status, data as Problem, name);
      add(received, data as SampleDelta);
      yield data as SampleDelta;
    }
  } catch (error) {
    signal.throwIfAborted();
    throw error instanceof ApiError ? error : new ConnectionError(name, error);
  } finally {
    signal.removeEventListener('abort', leave);
    await events.cancel().catch(() => undefined);
  }
  throw new ConnectionError(name, new Error('the stream ended before the answer'));
}

type Received = Pick<SampleChoice, 'text' | 'logprobs' | 'tool_calls'>;

/** The last event of a stream: the deltas have the texts. */
type SampleEnd = Omit<Sample, 'choices'> & { choices: Pick<SampleChoice, 'index' | 'finish_reason'>[] };

function add(received: Map<number, Received>, { index, text, logprobs, tool_calls = [] }: SampleDelta): void {
  const before = received.get(index) ?? { text: '', logprobs: [] };
  before.text += text;
  before.logprobs.push(...logprobs);
  for (const { index: call, id = '', function: called } of tool_calls) {
    before.tool_calls ??= [];
    const { name = '', arguments: more } = called;
    before.tool_calls[call] ??= { id, type: 'function', function: { name, arguments: '' } };
    before.tool_calls[call].function.arguments += more;
  }
  received.set(index, before);
}

function wholeOf({ choices, ...sample }: SampleEnd, received: ReadonlyMap<number, Received>): Sample {
  return {
    ...sample,
    choices: choices.map((choice) => ({ text: '', logprobs: [], ...received.get(choice.index), ...choice })),
  };
}
