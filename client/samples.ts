import { EventSourceParserStream } from 'eventsource-parser/stream';
import type { Problem, Sample, SampleDelta, SampleRequest } from '../contracts/types.js';
import { cancellable } from './cancellable.js';
import { ApiError, ConnectionError } from './errors.js';
import { bodyOf, type Http } from './transport.js';

/**
 * Requests a sample and yields its texts as they grow. The connection is closed when the consumer leaves, which ends the generation.
 * @returns the whole sample
 * @throws ApiError, also for an error behind the first text; ConnectionError when the connection breaks
 */
export function streamSample(
  http: Http,
  checkpoint_id: string,
  body: Omit<SampleRequest, 'stream'>,
  options: { signal?: AbortSignal },
): AsyncGenerator<SampleDelta, Sample> {
  return cancellable((signal) => deltasOf(http, checkpoint_id, body, signal), options.signal);
}

async function* deltasOf(
  http: Http,
  checkpoint_id: string,
  body: Omit<SampleRequest, 'stream'>,
  signal: AbortSignal,
): AsyncGenerator<SampleDelta, Sample> {
  const name = `sample of ${checkpoint_id}`;
  const stream = await bodyOf(
    name,
    http.POST('/v1/checkpoints/{checkpoint_id}/sample', {
      params: { path: { checkpoint_id } },
      body: { ...body, stream: true },
      headers: { accept: 'text/event-stream' },
      parseAs: 'stream',
      signal,
    }),
  );
  if (stream === null) throw new Error('a stream without a body');
  const events = stream
    .pipeThrough(new TextDecoderStream())
    .pipeThrough(new EventSourceParserStream())
    .getReader();
  try {
    for (;;) {
      const { value, done } = await events.read();
      if (done) break;
      const data = JSON.parse(value.data);
      if (value.event === 'end') return data as Sample;
      if (value.event === 'error') throw new ApiError((data as Problem).status, data as Problem, name);
      yield data as SampleDelta;
    }
  } catch (error) {
    signal.throwIfAborted();
    throw error instanceof ApiError ? error : new ConnectionError(name, error);
  } finally {
    await events.cancel().catch(() => undefined);
  }
  throw new ConnectionError(name, new Error('the stream ended before the answer'));
}
