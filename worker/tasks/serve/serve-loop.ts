import { type SampleTask, ZerofleetError } from '../../../contracts/index.js';
import type { GeneratedText, PlacedDelta } from '../../../contracts/queue.js';
import { seedOf } from '../../../platform/seeds.js';
import { toRankError } from '../../shared/errors.js';
import { losesDevice } from '../../shared/gpu-faults.js';
import type { CoreEngine, SequenceOptions } from '../../shared/native/adapter.js';
import type { ServeInput, ServeMessage } from '../protocol.js';
import { AnswerText } from './answer-text.js';
import type { Variant } from './load-model.js';
import type { SamplePrompt } from './prompt.js';

/** Interval of delta messages: a message per token would cost more than the computation of the token. */
const DELTA_MS = 40;

/** The answer to a request, one choice per sequence. */
interface Answer {
  /** Aborted when the request is cancelled. */
  cancelled: AbortController;
  prompt: string;
  prompt_tokens: number;
  cached_tokens: number;
  /** By id of the sequence in the engine. */
  choices: Map<number, AnswerText>;
  num_unfinished: number;
}

type VariantInput = Extract<ServeInput, { kind: 'load_variant' }>;
type SampleInput = Extract<ServeInput, { kind: 'sample' }>;
type LoadVariant = (input: VariantInput) => Promise<Variant & { bytes: number }>;

interface ServeLoopListener {
  send(message: ServeMessage): void;
  /** Called with an error after which this process cannot use the device any more. */
  onDeviceLost(error: unknown): void;
}

/** Answers any number of concurrent requests with a loaded model and adapters over it. */
export class ServeLoop {
  private readonly variants = new Map<number, Variant>();
  private readonly answers = new Map<number, Answer>();
  /** Request of each unfinished sequence. */
  private readonly requests = new Map<number, number>();
  private nextId = 1;
  private isStepping = false;
  private deltasSentAt = 0;

  constructor(
    private readonly engine: CoreEngine,
    private readonly load: LoadVariant,
    private readonly listener: ServeLoopListener,
  ) {}

  take(input: ServeInput): void {
    if (input.kind === 'load_variant') void this.loadVariant(input);
    else if (input.kind === 'unload_variant') void this.unloadVariant(input.variant);
    else if (input.kind === 'cancel') this.drop(input.id);
    else void this.sample(input);
  }

  private async loadVariant(input: VariantInput): Promise<void> {
    const { variant } = input;
    try {
      const { bytes, ...loaded } = await this.load(input);
      this.variants.set(variant, loaded);
      this.listener.send({ event: 'variant_loaded', variant, bytes });
    } catch (error) {
      this.listener.send({ event: 'variant_failed', variant, error: toRankError(error) });
    }
  }

  private async unloadVariant(variant: number): Promise<void> {
    const loaded = this.variants.get(variant);
    this.variants.delete(variant);
    void loaded?.prompts.close();
    if (loaded !== undefined && loaded.adapter > 0) await this.engine.removeAdapter(loaded.adapter);
    this.listener.send({ event: 'variant_unloaded', variant });
  }

  private async sample({ id, variant, request }: SampleInput): Promise<void> {
    const cancelled = new AbortController();
    const answer = {
      cancelled,
      prompt: '',
      prompt_tokens: 0,
      cached_tokens: 0,
      choices: new Map(),
      num_unfinished: 0,
    };
    this.answers.set(id, answer);
    try {
      const loaded = this.variants.get(variant);
      if (loaded === undefined) throw new ZerofleetError('internal_error', `there is no variant ${variant}`);
      const prompt = await loaded.prompts.build(request, cancelled.signal);
      if (cancelled.signal.aborted) return;
      this.begin(id, answer, request, prompt, loaded);
    } catch (error) {
      if (cancelled.signal.aborted) return;
      this.drop(id);
      this.listener.send({ event: 'failed', id, error: toRankError(error) });
      return;
    }
    if (!this.isStepping) void this.stepUntilDone();
  }

  private begin(
    id: number,
    answer: Answer,
    request: SampleInput['request'],
    { text, tokens, end_tokens, end_text, call_format }: SamplePrompt,
    { decoder, num_tokens, adapter }: Variant,
  ): void {
    const { max_tokens, temperature, top_k, top_p, seed, logprobs } = request;
    const { presence_penalty, frequency_penalty, logit_bias } = request;
    const stop = end_text === '' ? request.stop : [...request.stop, end_text];
    answer.prompt = text;
    answer.prompt_tokens = tokens.length;
    for (let index = 0; index < request.n; index++) {
      const options: SequenceOptions = {
        max_tokens,
        temperature,
        top_k,
        top_p,
        num_tokens,
        end_tokens,
        seed: seedOf(BigInt(seed) + BigInt(index)),
        presence_penalty,
        frequency_penalty,
        logit_bias: biasesOf(logit_bias),
        top_logprobs: logprobs ?? 0,
        adapter,
      };
      const sequence = this.nextId++;
      this.engine.add(sequence, tokens, options);
      this.requests.set(sequence, id);
      answer.choices.set(
        sequence,
        new AnswerText(decoder, { index, prompt: tokens, stop, call_format, logprobs: logprobs !== null }),
      );
      answer.num_unfinished += 1;
    }
  }

  /** Steps until no sequence is left. Requests that arrive meanwhile join at the next step. */
  private async stepUntilDone(): Promise<void> {
    this.isStepping = true;
    try {
      while (this.requests.size > 0) {
        for (const drawn of await this.engine.step()) this.addToken(drawn);
        if (performance.now() - this.deltasSentAt >= DELTA_MS) this.sendDeltas();
      }
    } catch (error) {
      // The agent sends the requests to another process.
      if (losesDevice(toRankError(error).code)) return this.listener.onDeviceLost(error);
      for (const id of new Set(this.requests.values())) {
        this.drop(id);
        this.listener.send({ event: 'failed', id, error: toRankError(error) });
      }
    } finally {
      this.isStepping = false;
    }
  }

  private addToken(drawn: Awaited<ReturnType<CoreEngine['step']>>[number]): void {
    const id = this.requests.get(drawn.id);
    const answer = id === undefined ? undefined : this.answers.get(id);
    const choice = answer?.choices.get(drawn.id);
    // The step may have included a cancelled sequence.
    if (id === undefined || answer === undefined || choice === undefined) return;
    choice.push(drawn);
    answer.cached_tokens = Math.max(answer.cached_tokens, drawn.cached_tokens);
    if (choice.finishReason === null) return;
    if (drawn.finish === null) this.engine.cancel(drawn.id);
    this.requests.delete(drawn.id);
    answer.num_unfinished -= 1;
    if (answer.num_unfinished > 0) return;
    this.answers.delete(id);
    this.listener.send({ event: 'done', id, sample: sampleOf(answer) });
  }

  private sendDeltas(): void {
    this.deltasSentAt = performance.now();
    for (const [id, { choices }] of this.answers) {
      const deltas = [...choices.values()]
        .map((choice) => choice.delta())
        .filter((delta): delta is PlacedDelta => delta !== null);
      if (deltas.length > 0) this.listener.send({ event: 'deltas', id, deltas });
    }
  }

  private drop(id: number): void {
    this.answers.get(id)?.cancelled.abort();
    for (const sequence of this.answers.get(id)?.choices.keys() ?? []) {
      this.engine.cancel(sequence);
      this.requests.delete(sequence);
    }
    this.answers.delete(id);
  }
}

function biasesOf(logitBias: SampleTask['logit_bias']): SequenceOptions['logit_bias'] {
  return Object.entries(logitBias).map(([token, bias]) => ({ token: Number(token), bias }));
}

function sampleOf({ prompt, prompt_tokens, cached_tokens, choices }: Answer): GeneratedText {
  const all = [...choices.values()];
  const completionTokens = all.reduce((sum, { numTokens }) => sum + numTokens, 0);
  return {
    prompt,
    choices: all.map((choice) => choice.choice()),
    usage: { prompt_tokens, cached_tokens, completion_tokens: completionTokens },
  };
}
