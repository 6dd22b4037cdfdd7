import type {
  AnswerEnd,
  GeneratedText,
  PositionedDelta,
  SampleMessage,
  SampleReply,
} from '../../../contracts/index.js';
import { waitOrAbort } from '../../../platform/process/retry.js';
import type { SampleRequests } from '../../../state/index.js';
import { isRetryable } from '../../shared/errors.js';

interface ReplyWriterOptions {
  store: Pick<SampleRequests, 'sendSampleMessage'>;
  /** Of the request. */
  id: string;
  worker: string;
  /** Aborted when the worker has the request no more. */
  signal: AbortSignal;
  /** Called when nobody waits for the answer, or another worker has the request. */
  onGone(): void;
}

/** Approximate bytes of a message with deltas. */
const MESSAGE_BYTES = 64 * 1024;
/** Pause before a message is sent again: its caller has many unread ones, or the job store does not answer. */
const FULL_MS = 50;
const RETRY_MS = 250;

/**
 * Sends the answer to the caller of a sample request, as fast as the caller reads. Waiting deltas are joined to
 * messages of bounded size.
 */
export class ReplyWriter {
  private readonly waiting: SampleMessage[] = [];
  /** Characters and tokens of each choice that were passed to `add`. */
  private readonly added = new Map<number, { text: number; logprobs: number }>();
  private writing: Promise<void> | null = null;

  constructor(private readonly options: ReplyWriterOptions) {}

  sendState(state: 'loading' | 'answering'): void {
    // A process that restarts the answer sends everything again.
    if (state === 'answering') this.added.clear();
    this.push({ state });
  }

  add(deltas: readonly PositionedDelta[]): void {
    for (const delta of deltas) {
      const { index, text_at, text, logprobs_at, logprobs } = delta;
      this.added.set(index, { text: text_at + text.length, logprobs: logprobs_at + logprobs.length });
      for (const part of partsOf(delta)) this.push({ deltas: [part] });
    }
  }

  /** Sends the rest of the answer and its end. Resolves when the caller has it, or nobody waits for it. */
  async end(reply: SampleReply): Promise<void> {
    if (reply.ok) this.add(this.restOf(reply.sample));
    this.push({ end: reply.ok ? { ok: true, sample: endOf(reply.sample) } : reply });
    await this.writing;
  }

  private restOf({ choices }: GeneratedText): PositionedDelta[] {
    return choices.flatMap(({ text, logprobs, finish_reason: _, ...common }) => {
      const { text: textAt, logprobs: logprobsAt } = this.added.get(common.index) ?? {
        text: 0,
        logprobs: 0,
      };
      const rest = { text: text.slice(textAt), logprobs: logprobs.slice(logprobsAt) };
      if (rest.text === '' && rest.logprobs.length === 0) return [];
      return [{ ...common, text_at: textAt, logprobs_at: logprobsAt, ...rest }];
    });
  }

  private push(message: SampleMessage): void {
    this.waiting.push(message);
    this.writing ??= this.write().finally(() => {
      this.writing = null;
    });
  }

  private async write(): Promise<void> {
    while (this.waiting.length > 0) {
      if (await this.send(this.next())) continue;
      this.waiting.length = 0;
      this.options.onGone();
    }
  }

  /** Takes the next message: of deltas as many as fit. */
  private next(): SampleMessage {
    const first = this.waiting.shift() as SampleMessage;
    if (!('deltas' in first)) return first;
    const deltas = [...first.deltas];
    for (let bytes = bytesOf(first); ; ) {
      const [after] = this.waiting;
      if (after === undefined || !('deltas' in after)) break;
      bytes += bytesOf(after);
      if (bytes > MESSAGE_BYTES) break;
      deltas.push(...after.deltas);
      this.waiting.shift();
    }
    return { deltas };
  }

  /** @returns false when nobody waits for the message */
  private async send(message: SampleMessage): Promise<boolean> {
    const { store, id, worker, signal } = this.options;
    while (!signal.aborted) {
      const outcome = await store
        .sendSampleMessage(id, worker, message)
        .catch((error: unknown) => (isRetryable(error) ? 'away' : 'gone'));
      if (outcome === 'sent') return true;
      if (outcome === 'gone') return false;
      await waitOrAbort(outcome === 'full' ? FULL_MS : RETRY_MS, signal);
    }
    return false;
  }
}

function endOf({ prompt, choices, usage }: GeneratedText): AnswerEnd {
  return {
    prompt,
    choices: choices.map(({ index, finish_reason }) => ({ index, finish_reason })),
    usage,
  };
}

/** Approximate bytes of a token with its log-probability. */
const TOKEN_BYTES = 48;

function bytesOf({ deltas }: { deltas: readonly PositionedDelta[] }): number {
  return deltas.reduce((sum, { text, logprobs }) => {
    const tokens = logprobs.reduce((count, { top }) => count + 1 + top.length, 0);
    return sum + text.length + TOKEN_BYTES * tokens;
  }, 0);
}

/** Cuts a delta to parts that fit into messages. */
function* partsOf(delta: PositionedDelta): Generator<PositionedDelta> {
  const { logprobs, logprobs_at } = delta;
  const tokens = Math.max(1, ...logprobs.map(({ top }) => 1 + top.length));
  const length = Math.max(1, Math.floor(MESSAGE_BYTES / (TOKEN_BYTES * tokens)));
  yield { ...delta, logprobs: logprobs.slice(0, length) };
  for (let at = length; at < logprobs.length; at += length)
    yield {
      ...delta,
      text_at: delta.text_at + delta.text.length,
      text: '',
      logprobs_at: logprobs_at + at,
      logprobs: logprobs.slice(at, at + length),
    };
}
