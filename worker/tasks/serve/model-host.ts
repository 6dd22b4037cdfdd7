import { ZerofleetError } from '../../../contracts/index.js';
import type { GeneratedText, PlacedDelta } from '../../../contracts/queue.js';
import { seedOf } from '../../../platform/seeds.js';
import { toRankError } from '../../shared/errors.js';
import { losesDevice } from '../../shared/gpu-faults.js';
import type { AnswerOptions, CoreEngine } from '../../shared/native/adapter.js';
import type { HostInput, HostMessage } from '../protocol.js';
import { AnswerText } from './answer-text.js';
import type { Variant } from './load-model.js';
import type { SamplePrompt } from './prompt.js';

/** Time for which deltas are gathered: a message for each token would cost more than its computation. */
const GATHER_MS = 40;

interface Answer {
  /** Aborted when the request is cancelled. */
  left: AbortController;
  prompt: string;
  prompt_tokens: number;
  cached_tokens: number;
  /** By engine id. */
  texts: Map<number, AnswerText>;
  open: number;
}

type VariantInput = Extract<HostInput, { kind: 'variant' }>;
type AnswerInput = Extract<HostInput, { kind: 'answer' }>;
type LoadVariant = (input: VariantInput) => Promise<Variant & { bytes: number }>;

export interface ModelHostListener {
  send(message: HostMessage): void;
  /** Called with the error after which the device computes nothing more in this process. */
  onDeviceLost(error: unknown): void;
}

/** Answers requests with a loaded model and adapters over it, as many at once as come. */
export class ModelHost {
  private readonly variants = new Map<number, Variant>();
  private readonly answers = new Map<number, Answer>();
  /** Answer of an engine id. */
  private readonly owners = new Map<number, number>();
  private next_id = 1;
  private running = false;
  private told_at = 0;

  constructor(
    private readonly engine: CoreEngine,
    private readonly load: LoadVariant,
    private readonly listener: ModelHostListener,
  ) {}

  take(input: HostInput): void {
    if (input.kind === 'variant') void this.add(input);
    else if (input.kind === 'forget') void this.forget(input.variant);
    else if (input.kind === 'cancel') this.drop(input.id);
    else void this.answer(input);
  }

  private async add(input: VariantInput): Promise<void> {
    const { variant } = input;
    try {
      const { bytes, ...loaded } = await this.load(input);
      this.variants.set(variant, loaded);
      this.listener.send({ host: 'variant', variant, bytes });
    } catch (error) {
      this.listener.send({ host: 'no_variant', variant, error: toRankError(error) });
    }
  }

  private async forget(variant: number): Promise<void> {
    const known = this.variants.get(variant);
    this.variants.delete(variant);
    void known?.prompts.close();
    if (known !== undefined && known.adapter > 0) await this.engine.removeAdapter(known.adapter);
    this.listener.send({ host: 'forgotten', variant });
  }

  private async answer({ id, variant, request }: AnswerInput): Promise<void> {
    const left = new AbortController();
    const answer = { left, prompt: '', prompt_tokens: 0, cached_tokens: 0, texts: new Map(), open: 0 };
    this.answers.set(id, answer);
    try {
      const known = this.variants.get(variant);
      if (known === undefined) throw new ZerofleetError('internal_error', `there is no variant ${variant}`);
      const prompt = await known.prompts.build(request, left.signal);
      if (left.signal.aborted) return;
      this.begin(id, answer, request, prompt, known);
    } catch (error) {
      if (left.signal.aborted) return;
      this.drop(id);
      this.listener.send({ host: 'failed', id, error: toRankError(error) });
      return;
    }
    if (!this.running) void this.run();
  }

  private begin(
    id: number,
    answer: Answer,
    request: AnswerInput['request'],
    { text, tokens, end_token, end_text }: SamplePrompt,
    { decoder, num_tokens, adapter }: Variant,
  ): void {
    const { max_tokens, temperature, top_k, top_p, seed, logprobs } = request;
    const stop = end_text === '' ? request.stop : [...request.stop, end_text];
    answer.prompt = text;
    answer.prompt_tokens = tokens.length;
    for (let index = 0; index < request.n; index++) {
      const options: AnswerOptions = {
        max_tokens,
        temperature,
        top_k,
        top_p,
        num_tokens,
        end_tokens: end_token === null ? [] : [end_token],
        seed: seedOf(BigInt(seed) + BigInt(index)),
        top_logprobs: logprobs ?? 0,
        adapter,
      };
      const engine_id = this.next_id++;
      this.engine.add(engine_id, tokens, options);
      this.owners.set(engine_id, id);
      answer.texts.set(
        engine_id,
        new AnswerText(decoder, { index, prompt: tokens, stop, logprobs: logprobs !== null }),
      );
      answer.open += 1;
    }
  }

  /** Steps until nothing is left. What arrives meanwhile joins at the next step. */
  private async run(): Promise<void> {
    this.running = true;
    try {
      while (this.owners.size > 0) {
        for (const drawn of await this.engine.step()) this.draw(drawn);
        if (performance.now() - this.told_at >= GATHER_MS) this.tell();
      }
    } catch (error) {
      // The requests begin anew in another process.
      if (losesDevice(toRankError(error).code)) return this.listener.onDeviceLost(error);
      for (const id of new Set(this.owners.values())) {
        this.drop(id);
        this.listener.send({ host: 'failed', id, error: toRankError(error) });
      }
    } finally {
      this.running = false;
    }
  }

  private draw(drawn: Awaited<ReturnType<CoreEngine['step']>>[number]): void {
    const id = this.owners.get(drawn.id);
    const answer = id === undefined ? undefined : this.answers.get(id);
    const text = answer?.texts.get(drawn.id);
    // A cancelled text may have been in the step.
    if (id === undefined || answer === undefined || text === undefined) return;
    text.push(drawn);
    answer.cached_tokens = Math.max(answer.cached_tokens, drawn.cached_tokens);
    if (text.finish_reason === null) return;
    if (drawn.finish === null) this.engine.cancel(drawn.id);
    this.owners.delete(drawn.id);
    answer.open -= 1;
    if (answer.open > 0) return;
    this.answers.delete(id);
    this.listener.send({ host: 'done', id, sample: sampleOf(answer) });
  }

  private tell(): void {
    this.told_at = performance.now();
    for (const [id, { texts }] of this.answers) {
      const deltas = [...texts.values()]
        .map((text) => text.delta())
        .filter((delta): delta is PlacedDelta => delta !== null);
      if (deltas.length > 0) this.listener.send({ host: 'deltas', id, deltas });
    }
  }

  private drop(id: number): void {
    this.answers.get(id)?.left.abort();
    for (const engine_id of this.answers.get(id)?.texts.keys() ?? []) {
      this.engine.cancel(engine_id);
      this.owners.delete(engine_id);
    }
    this.answers.delete(id);
  }
}

function sampleOf({ prompt, prompt_tokens, cached_tokens, texts }: Answer): GeneratedText {
  const all = [...texts.values()];
  const completion_tokens = all.reduce((sum, { num_tokens }) => sum + num_tokens, 0);
  return {
    prompt,
    choices: all.map((text) => text.choice()),
    usage: { prompt_tokens, cached_tokens, completion_tokens },
  };
}
