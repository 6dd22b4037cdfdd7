import { type SampleTask, ZerofleetError } from '../../../contracts/index.js';
import type { GeneratedText, PositionedDelta } from '../../../contracts/queue.js';
import { seedOf } from '../../../platform/seeds.js';
import { toRankError } from '../../shared/errors.js';
import { losesDevice } from '../../shared/gpu-faults.js';
import type { CoreEngine, SequenceOptions } from '../../shared/native/adapter.js';
import type { ServeInput, ServeMessage } from '../protocol.js';
import { AnswerText } from './answer-text.js';
import { ConstrainedSequences } from './constrained-sequences.js';
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
  private readonly constrained: ConstrainedSequences;
  /** Constrained sequences whose last token may have been drawn: they are as long as they may be. */
  private readonly longest = new Set<number>();
  private nextId = 1;
  private isStepping = false;
  private deltasSentAt = 0;

  constructor(
    private readonly engine: CoreEngine,
    private readonly load: LoadVariant,
    private readonly listener: ServeLoopListener,
  ) {
    this.constrained = new ConstrainedSequences({
      onMask: (sequence, mask) => {
        if (this.longest.has(sequence)) this.end(sequence, 'length');
        else engine.allow(sequence, mask);
      },
      onComplete: (sequence) => this.end(sequence, 'stop'),
      onError: (sequence, error) => this.fail(this.requests.get(sequence), error),
    });
  }

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
    void loaded?.masks.close();
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
      if (!cancelled.signal.aborted) this.fail(id, error);
      return;
    }
    if (this.isStepping) this.constrained.interrupt();
    else void this.stepUntilDone();
  }

  private begin(
    id: number,
    answer: Answer,
    request: SampleInput['request'],
    { text, tokens, end_tokens, end_text, call_format, constraint }: SamplePrompt,
    { decoder, masks, num_tokens, adapter }: Variant,
  ): void {
    const { max_tokens, temperature, top_k, top_p, seed, logprobs } = request;
    const { presence_penalty, frequency_penalty, logit_bias } = request;
    const isConstrained = constraint !== null;
    const stop = end_text === '' || isConstrained ? request.stop : [...request.stop, end_text];
    answer.prompt = text;
    answer.prompt_tokens = tokens.length;
    for (let index = 0; index < request.n; index++) {
      const options: SequenceOptions = {
        max_tokens,
        temperature,
        top_k,
        top_p,
        num_tokens,
        end_tokens: isConstrained ? [] : end_tokens,
        seed: seedOf(BigInt(seed) + BigInt(index)),
        presence_penalty,
        frequency_penalty,
        logit_bias: biasesOf(logit_bias),
        top_logprobs: logprobs ?? 0,
        adapter,
        is_constrained: isConstrained,
      };
      const sequence = this.nextId++;
      this.engine.add(sequence, tokens, options);
      this.requests.set(sequence, id);
      if (isConstrained) this.constrained.add(sequence, { constraint, masks });
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
        await this.constrained.settled({ until_one: this.constrained.numWaiting === this.requests.size });
        if (this.requests.size === 0) break;
        for (const drawn of await this.engine.step()) this.addToken(drawn);
        if (performance.now() - this.deltasSentAt >= DELTA_MS) this.sendDeltas();
      }
    } catch (error) {
      // The agent sends the requests to another process.
      if (losesDevice(toRankError(error).code)) return this.listener.onDeviceLost(error);
      for (const id of new Set(this.requests.values())) this.fail(id, error);
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
    answer.cached_tokens = Math.max(answer.cached_tokens, drawn.cached_tokens);
    if (this.constrained.has(drawn.id)) {
      choice.push({ ...drawn, finish: null });
      if (drawn.finish !== null) this.longest.add(drawn.id);
      if (choice.finishReason === null) this.constrained.push(drawn.id, drawn.token);
    } else choice.push(drawn);
    if (choice.finishReason !== null) this.finish(drawn.id);
  }

  /** Ends a sequence. */
  private end(sequence: number, reason: 'stop' | 'length'): void {
    const id = this.requests.get(sequence);
    if (id === undefined) return;
    this.answers.get(id)?.choices.get(sequence)?.end(reason);
    this.finish(sequence);
  }

  /** Sends the answer of a sequence that has ended once its other choices have, too. */
  private finish(sequence: number): void {
    const id = this.requests.get(sequence);
    const answer = id === undefined ? undefined : this.answers.get(id);
    this.forget(sequence);
    if (id === undefined || answer === undefined) return;
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
        .filter((delta): delta is PositionedDelta => delta !== null);
      if (deltas.length > 0) this.listener.send({ event: 'deltas', id, deltas });
    }
  }

  private drop(id: number): void {
    this.answers.get(id)?.cancelled.abort();
    for (const sequence of this.answers.get(id)?.choices.keys() ?? []) this.forget(sequence);
    this.answers.delete(id);
  }

  private fail(id: number | undefined, error: unknown): void {
    if (id === undefined) return;
    this.drop(id);
    this.listener.send({ event: 'failed', id, error: toRankError(error) });
  }

  private forget(sequence: number): void {
    this.engine.cancel(sequence);
    this.constrained.remove(sequence);
    this.longest.delete(sequence);
    this.requests.delete(sequence);
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
