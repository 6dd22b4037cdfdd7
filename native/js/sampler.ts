import { addon, type RawSampler } from './addon.js';
import { native, nativeAsync } from './error.js';
import { cpuIsa } from './info.js';
import type { ModelConfig } from './model-config.js';

export interface SampleOptions {
  max_tokens: number;
  /** 0 picks the most likely token each time. */
  temperature: number;
  /** Draw among the k most likely tokens; 0 keeps all. */
  top_k: number;
  /** Further restricts the draw to the fewest tokens whose probabilities add up to this; 1 keeps all. */
  top_p: number;
  /** Only tokens below it are drawn: those that the tokenizer knows. 0 allows the whole vocabulary. */
  num_tokens: number;
  /** No token is drawn after it, and it is left out; -1: there is none. */
  end_token: number;
  seed: number;
}

/**
 * Draws tokens from a set of weights, computed in bf16. The same seed gives the same tokens. One operation at a time: a call while
 * a draw still runs fails with `busy`.
 */
export class Sampler {
  private constructor(private readonly raw: RawSampler) {}

  static create(model: ModelConfig, threads: number): Sampler {
    return native(() => new Sampler(new (addon().Sampler)(model, threads, cpuIsa())));
  }

  /** Sets parameter `index` of paramTable(); all must be set before sample(). */
  setParam(index: number, fp32: Uint8Array): void {
    const aligned = fp32.byteOffset % 4 === 0 ? fp32 : new Uint8Array(fp32);
    native(() => this.raw.setParam(index, aligned));
  }

  async sample(prompt: number[], options: SampleOptions): Promise<number[]> {
    return Array.from(await nativeAsync(() => this.raw.sample(Int32Array.from(prompt), options)));
  }

  close(): void {
    this.raw.close();
  }
}
