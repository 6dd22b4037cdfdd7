import type { AdapterParams, Architecture } from '../../contracts/architecture.js';
import type { Precision } from '../../contracts/index.js';
import { type AddedAdapter, addon, type DrawnToken, type RawAnswerEngine } from './addon.js';
import { native, nativeAsync } from './error.js';
import { cpuIsa } from './info.js';
import type { DeviceKind } from './trainer-config.js';

export interface AnswerEngineOptions {
  threads: number;
  /**
   * Dtype of weights and products. In the precision of a training, log-probabilities have the bits of the losses of its
   * evaluation.
   */
  dtype: Precision;
  device: DeviceKind;
  /** Tokens that the KV cache holds. */
  cache_tokens: number;
  /** Largest number of tokens in a sequence; the model and the KV cache may limit it further. */
  max_length: number;
  /** Sequences that run at the same time, at most 128. */
  max_sequences: number;
}

/** How a sequence continues after its prompt. */
export interface SequenceOptions {
  /** At least 1. */
  max_tokens: number;
  /** 0 picks the most likely token each time. */
  temperature: number;
  /** Draw among the k most likely tokens; 0 keeps all. */
  top_k: number;
  /** Further restricts the draw to the fewest tokens whose probabilities add up to this; 1 keeps all. */
  top_p: number;
  /** Draws and reports only tokens below this, which the tokenizer knows; 0: no limit. */
  num_tokens: number;
  /** The sequence ends with the first of these that is drawn. */
  end_tokens: number[];
  seed: number;
  /** Subtracted from the logit of a token that was drawn before. */
  presence_penalty: number;
  /** Subtracted from the logit of a token as often as the token was drawn before. */
  frequency_penalty: number;
  /** Numbers that are added to logits, each of another token. */
  logit_bias: { token: number; bias: number }[];
  /** Number of most likely tokens to report with each token. */
  top_logprobs: number;
  /** Number that addAdapter() returned; 0 selects the model without an adapter. */
  adapter: number;
  /** True: each token is drawn from those that `allow` names for it, and waits for them. */
  is_constrained: boolean;
}

/** The most likely tokens, without a limit. */
export const GREEDY: Omit<SequenceOptions, 'max_tokens'> = {
  temperature: 0,
  top_k: 0,
  top_p: 1,
  num_tokens: 0,
  end_tokens: [],
  seed: 1,
  presence_penalty: 0,
  frequency_penalty: 0,
  logit_bias: [],
  top_logprobs: 0,
  adapter: 0,
  is_constrained: false,
};

/**
 * Runs continuous batching over sequences of a model and of adapters over it; see native/serve/answer_engine.h. Every
 * drawn token is a function of weights, prompt, options and seed alone.
 *
 * Calls of step(), addAdapter() and removeAdapter() run one after the other; setParam() fails with `busy` meanwhile.
 * The other methods may be called at any time.
 */
export class AnswerEngine {
  /** Settles after the last of the calls that run one after the other. */
  private lastCall: Promise<unknown> = Promise.resolve();

  private constructor(private readonly raw: RawAnswerEngine) {}

  /** @throws NativeError `invalid_model_config`, `invalid_argument`, `device_unavailable`, `out_of_memory` */
  static create(model: Architecture, options: AnswerEngineOptions): AnswerEngine {
    return native(() => new AnswerEngine(new (addon().AnswerEngine)(model, options, cpuIsa())));
  }

  /** Largest number of tokens in a sequence, prompt and answer together. */
  get maxLength(): number {
    return native(() => this.raw.maxLength);
  }

  /** Bytes of the weights and the KV cache once all parameters are set, without adapters. */
  get numBytes(): number {
    return native(() => this.raw.numBytes);
  }

  /**
   * Sets elements of parameter `index` of paramTable() from `begin` on, rounded to the dtype of the engine. The
   * elements of a parameter are set in order, each once, before the first step.
   */
  setParam(index: number, begin: number, dtype: AnswerEngineOptions['dtype'], elements: Uint8Array): void {
    native(() => this.raw.setParam(index, begin, dtype, aligned(elements)));
  }

  /**
   * Adds an adapter over the model. `values`: fp32 of its parameters, in the order of paramTable(), which lists them
   * after those of the model.
   * @throws NativeError `adapter_not_servable` for an adapter with magnitudes, `modules_to_save` or experts, which
   *   changes more than it adds to the products of layers; `invalid_argument`; `out_of_memory`. After an error all
   *   sequences and other adapters continue
   */
  addAdapter(adapter: AdapterParams, values: readonly Uint8Array[]): Promise<AddedAdapter> {
    return this.inTurn(() => this.raw.addAdapter(adapter, values.map(aligned)));
  }

  /** Removes an adapter, drops its sequences, and releases its memory. Unknown numbers are ignored. */
  removeAdapter(adapter: number): Promise<void> {
    return this.inTurn(() => this.raw.removeAdapter(adapter));
  }

  /**
   * Adds a sequence. `id`: used once.
   * @throws NativeError `prompt_too_long` for a prompt of `max_length` or more tokens; `token_out_of_vocab`;
   *   `invalid_argument`
   */
  add(id: number, prompt: readonly number[], options: SequenceOptions): void {
    const endTokens = Int32Array.from(options.end_tokens);
    native(() => this.raw.add(id, Int32Array.from(prompt), { ...options, end_tokens: endTokens }));
  }

  /** Drops a sequence. Unknown ids are ignored. */
  cancel(id: number): void {
    native(() => this.raw.cancel(id));
  }

  /**
   * Sets the tokens that the next one of a constrained sequence is drawn from. Unknown ids are ignored.
   * @param mask bit t % 32 of word t / 32 for token t
   * @throws NativeError `invalid_argument` for a mask without a token
   */
  allow(id: number, mask: Uint32Array): void {
    native(() => this.raw.allow(id, mask));
  }

  /** Computes the next rows. Returns the drawn tokens; none while prompts are prefilled, and without sequences. */
  step(): Promise<DrawnToken[]> {
    return this.inTurn(() => this.raw.step());
  }

  close(): void {
    this.raw.close();
  }

  private inTurn<T>(call: () => Promise<T>): Promise<T> {
    const called = this.lastCall.then(() => nativeAsync(call));
    this.lastCall = called.catch(() => undefined);
    return called;
  }
}

/** The addon reads whole elements. */
function aligned(elements: Uint8Array): Uint8Array {
  return elements.byteOffset % 4 === 0 ? elements : new Uint8Array(elements);
}
