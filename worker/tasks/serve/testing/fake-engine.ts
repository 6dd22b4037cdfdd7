/** A serve loop over an engine and masks that take a step when a test says so. */
import { once } from 'node:events';
import { setImmediate as turn } from 'node:timers/promises';
import { type SampleTask, ZerofleetError } from '../../../../contracts/index.js';
import { BytesTokenizer } from '../../../../formats/encoding/bytes-tokenizer.js';
import { SAMPLE_TASK } from '../../../../platform/testing/sample-task.js';
import type { CoreEngine, DrawnToken, SequenceOptions } from '../../../shared/native/adapter.js';
import type { ServeInput, ServeMessage } from '../../protocol.js';
import type { MaskRequest, NextTokens } from '../mask-thread-main.js';
import { buildPrompt } from '../prompt.js';
import { ServeLoop } from '../serve-loop.js';

export const TASK: SampleTask = { ...SAMPLE_TASK, max_tokens: 3, seed: 5 };
/** Its prompt is not made until it is cancelled. */
export const SLOW = { ...TASK, prompt: 'slow' };
const RULES = { chat_template: null, template_date: null, max_length: 1000 };

/** Repeats the letter that belongs to the seed; a step is taken when `next` is called. */
export class FakeEngine implements CoreEngine {
  readonly maxLength = 64;
  readonly numBytes = 1;
  readonly sequences = new Map<number, { options: SequenceOptions; left: number }>();
  readonly cancelled: number[] = [];
  failure: Error | null = null;
  /** Masks by sequence. */
  readonly masks = new Map<number, Uint32Array>();
  private waiting: (() => void)[] = [];

  readonly removed: number[] = [];

  setParam(): void {}
  async addAdapter() {
    return { adapter: 1, num_bytes: 1 };
  }
  async removeAdapter(adapter: number): Promise<void> {
    this.removed.push(adapter);
  }
  close(): void {}
  allow(id: number, mask: Uint32Array): void {
    this.masks.set(id, mask);
  }

  add(id: number, prompt: readonly number[], options: SequenceOptions): void {
    if (prompt.length >= this.maxLength)
      throw Object.assign(new Error('too long'), { code: 'prompt_too_long' });
    this.sequences.set(id, { options, left: options.max_tokens });
  }

  cancel(id: number): void {
    this.cancelled.push(id);
    this.sequences.delete(id);
  }

  async step(): Promise<DrawnToken[]> {
    await new Promise<void>((resolve) => this.waiting.push(resolve));
    if (this.failure !== null) throw this.failure;
    const ready = [...this.sequences].filter(
      ([id, { options }]) => !options.is_constrained || this.masks.delete(id),
    );
    return ready.map(([id, sequence]) => {
      sequence.left -= 1;
      const finish = sequence.left === 0 ? 'length' : null;
      if (finish !== null) this.sequences.delete(id);
      return { id, token: 97 + sequence.options.seed, logprob: -1, top: [], finish, cached_tokens: 2 };
    });
  }

  /** Lets the loop take a step, if it waits for one. */
  async next(): Promise<void> {
    for (let tries = 0; this.waiting.length === 0 && tries < 20; tries++) await turn();
    this.waiting.shift()?.();
    await turn();
  }
}

/** Each constrained answer is complete after four tokens. */
class FakeMasks {
  readonly requests: MaskRequest[] = [];
  failure: Error | null = null;
  /** Resolves when masks may come. */
  ready: Promise<unknown> = Promise.resolve();

  async next(request: MaskRequest): Promise<NextTokens> {
    this.requests.push(request);
    await this.ready;
    if (this.failure !== null) throw this.failure;
    return { mask: request.tokens.length < 4 ? Uint32Array.of(request.tokens.length + 1) : null };
  }

  async close(): Promise<void> {}
}

export type VariantInput = Extract<ServeInput, { kind: 'load_variant' }>;

export const variantInput = (variant: number) =>
  ({ kind: 'load_variant', variant, is_adapter: true, credentials: null }) as VariantInput;

/** A serve loop with variant 1, the model alone. */
export async function setup() {
  const engine = new FakeEngine();
  const closed: number[] = [];
  const sent: ServeMessage[] = [];
  const load = async ({ variant }: VariantInput) => {
    if (variant === 9) throw new ZerofleetError('tokenizer_invalid', 'no tokenizer');
    const tokenizer = new BytesTokenizer();
    const prompts = {
      build: async (request: SampleTask, signal: AbortSignal) => {
        if (request.prompt === 'slow') await once(signal, 'abort');
        return buildPrompt(tokenizer, request, RULES);
      },
      close: async () => void closed.push(variant),
    };
    return { prompts, masks, decoder: tokenizer, num_tokens: 256, adapter: variant - 1, bytes: 7 };
  };
  const lost: unknown[] = [];
  const masks = new FakeMasks();
  const loop = new ServeLoop(engine, load, {
    send: (message) => sent.push(message),
    onDeviceLost: (error) => lost.push(error),
  });
  loop.take(variantInput(1));
  await turn();
  return { engine, sent, lost, loop, closed, masks };
}
