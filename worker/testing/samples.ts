import { randomUUID } from 'node:crypto';
import type {
  Checkpoint,
  PositionedDelta,
  SampleMessage,
  SamplePayload,
  SampleReply,
} from '../../contracts/index.js';
import { SAMPLE_TASK } from '../../platform/testing/sample-task.js';
import { until } from '../../platform/testing/waiting.js';
import type { Fleet } from './fleet.js';

const REQUEST = { ...SAMPLE_TASK, max_tokens: 64 };

/** A checkpoint, or an uploaded model. */
type Source = Checkpoint | { model_id: string };

/** Asks a fleet's workers for samples, as the API does. */
export class SampleClient {
  private readonly caller = randomUUID();
  private after: string | null = null;
  /** Messages by request. */
  readonly messages = new Map<string, SampleMessage[]>();

  constructor(private readonly fleet: Fleet) {}

  /** @param waitMs time until the request expires */
  async ask(
    source: Source,
    request: Partial<SamplePayload['request']> = {},
    waitMs = 240_000,
  ): Promise<SampleReply> {
    return this.reply(await this.add(source, request, waitMs));
  }

  /** Adds a request and does not wait for its answer. @returns its id */
  async add(
    source: Source,
    request: Partial<SamplePayload['request']> = {},
    waitMs = 240_000,
  ): Promise<string> {
    const id = randomUUID();
    const payloadSource =
      'model_id' in source
        ? source
        : { job_id: source.job_id, checkpoint: { id: source.id, prefix: source.prefix } };
    this.messages.set(id, []);
    await this.fleet.store.requestSample({
      id,
      caller: this.caller,
      pool: 'default',
      named: false,
      payload: {
        project: 'default',
        model: 'model_id' in source ? source.model_id : source.id,
        source: payloadSource,
        request: { ...REQUEST, ...request },
      },
      wait_ms: waitMs,
    });
    return id;
  }

  /** Waits for the answer to a request. */
  async reply(id: string): Promise<SampleReply> {
    const messages = this.messages.get(id) ?? [];
    await until(async () => {
      await this.read();
      return messages.some((message) => 'end' in message);
    });
    const end = messages.at(-1);
    if (end === undefined || !('end' in end)) throw new Error('a message follows the end');
    if (!end.end.ok) return end.end;
    const deltas = messages.flatMap((message) => ('deltas' in message ? message.deltas : []));
    const choices = end.end.sample.choices.map((choice) => ({
      ...choice,
      ...contentOf(deltas, choice.index),
    }));
    return { ok: true, sample: { ...end.end.sample, choices } };
  }

  /** Reads all messages that workers have sent. */
  async read(): Promise<void> {
    for (;;) {
      const read = await this.fleet.store.readMessages(this.caller, this.after);
      if (read.length === 0) return;
      for (const { position, id, message } of read) {
        this.after = position;
        this.messages.get(id)?.push(message);
      }
    }
  }

  /** Number of requests that no worker has taken. */
  async waiting(): Promise<number> {
    return (await this.fleet.store.countSamples('default')).waiting;
  }
}

/** Joins the deltas of a choice. A worker that takes over repeats them from the start. */
function contentOf(deltas: readonly PositionedDelta[], index: number) {
  let content = { text: '', logprobs: [] as PositionedDelta['logprobs'] };
  for (const delta of deltas.filter((one) => one.index === index))
    content = {
      text: content.text.slice(0, delta.text_at) + delta.text,
      logprobs: [...content.logprobs.slice(0, delta.logprobs_at), ...delta.logprobs],
    };
  return content;
}
