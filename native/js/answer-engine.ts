import { type AddedAdapter, addon, type DrawnToken, type RawAnswerEngine } from './addon.js';
import { native, nativeAsync } from './error.js';
import { cpuIsa } from './info.js';
import type { AdapterConfig, ModelConfig } from './model-config.js';
import type { DeviceKind, Precision } from './trainer-config.js';

export interface AnswerEngineOptions {
  threads: number;
  /** Of weights and products. In the precision of a training, log-probabilities have the bits of the losses of its evaluation. */
  dtype: Precision;
  device: DeviceKind;
  /** Tokens whose keys and values are kept, of all texts together. */
  cache_tokens: number;
  /** Tokens of the longest text, prompt and answer together, if the model and the cache have room for it. */
  max_length: number;
  /** Texts that are computed at once, at most 128. */
  max_texts: number;
}

export interface AnswerOptions {
  /** At least 1. */
  max_tokens: number;
  /** 0 picks the most likely token each time. */
  temperature: number;
  /** Draw among the k most likely tokens; 0 keeps all. */
  top_k: number;
  /** Further restricts the draw to the fewest tokens whose probabilities add up to this; 1 keeps all. */
  top_p: number;
  /** Only tokens below it are drawn, and told as likely ones: those that the tokenizer knows. 0 allows the whole vocabulary. */
  num_tokens: number;
  /** No token is drawn after one of these. */
  end_tokens: number[];
  seed: number;
  /** Most likely tokens that are told with each token. */
  top_logprobs: number;
  /** Number that addAdapter() returned; 0 selects the model without an adapter. */
  adapter: number;
}

/**
 * Goes on with any number of texts at once. What is drawn is a function of weights, prompt, options and seed alone: other texts, earlier
 * ones and the number of threads don't count. Texts of the model and of adapters over it are computed together. Calls of step(),
 * addAdapter() and removeAdapter() take turns in their order; setParam() meanwhile fails with `busy`. All else may come at any time.
 */
export class AnswerEngine {
  /** Resolves after the last call that takes a turn. */
  private turn: Promise<unknown> = Promise.resolve();

  private constructor(private readonly raw: RawAnswerEngine) {}

  /** @throws NativeError `invalid_model_config`, `invalid_argument`, `device_unavailable`, `out_of_memory` */
  static create(model: ModelConfig, options: AnswerEngineOptions): AnswerEngine {
    return native(() => new AnswerEngine(new (addon().AnswerEngine)(model, options, cpuIsa())));
  }

  /** Tokens of the longest text, prompt and answer together. */
  get max_length(): number {
    return native(() => this.raw.max_length);
  }

  /** Bytes of weights, keys and values when all parameters are set; adapters apart. */
  get num_bytes(): number {
    return native(() => this.raw.num_bytes);
  }

  /**
   * Sets elements of parameter `index` of paramTable() from `begin` on; all must be set once before the first step, those of a parameter in
   * their order.
   */
  setParam(index: number, begin: number, fp32: Uint8Array): void {
    native(() => this.raw.setParam(index, begin, aligned(fp32)));
  }

  /**
   * Adds an adapter over the model. `values`: of its parameters, which paramTable() has behind those of the model, in their order, fp32.
   * @throws NativeError `adapter_not_servable` for one that changes more than it adds to the products of layers: with magnitudes,
   *   `modules_to_save`, or over experts; `invalid_argument`; `out_of_memory`. Texts and other adapters go on
   */
  addAdapter(adapter: AdapterConfig, values: readonly Uint8Array[]): Promise<AddedAdapter> {
    return this.inTurn(() => this.raw.addAdapter(adapter, values.map(aligned)));
  }

  /** Forgets an adapter and its texts, and releases its memory; one that is not there is ignored. */
  removeAdapter(adapter: number): Promise<void> {
    return this.inTurn(() => this.raw.removeAdapter(adapter));
  }

  /**
   * Adds a text. `id`: used once.
   * @throws NativeError `prompt_too_long` where no token can follow; `token_out_of_vocab`; `invalid_argument`
   */
  add(id: number, prompt: readonly number[], options: AnswerOptions): void {
    const end_tokens = Int32Array.from(options.end_tokens);
    native(() => this.raw.add(id, Int32Array.from(prompt), { ...options, end_tokens }));
  }

  /** Forgets a text; one that is not there is ignored. */
  cancel(id: number): void {
    native(() => this.raw.cancel(id));
  }

  /** Computes the next rows of all texts. Returns what was drawn; nothing while prompts are still being read, and without texts. */
  step(): Promise<DrawnToken[]> {
    return this.inTurn(() => this.raw.step());
  }

  close(): void {
    this.raw.close();
  }

  private inTurn<T>(call: () => Promise<T>): Promise<T> {
    const called = this.turn.then(() => nativeAsync(call));
    this.turn = called.catch(() => undefined);
    return called;
  }
}

/** The addon reads whole floats. */
function aligned(fp32: Uint8Array): Uint8Array {
  return fp32.byteOffset % 4 === 0 ? fp32 : new Uint8Array(fp32);
}
