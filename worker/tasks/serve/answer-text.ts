import type { SampleChoice, SampledToken } from '../../../contracts/index.js';
import type { PlacedDelta } from '../../../contracts/queue.js';
import type { AnswerDecoder } from '../../../formats/encoding/prompt-tokenizer.js';
import type { DrawnToken } from '../../shared/native/adapter.js';
import { Detokenizer } from './detokenizer.js';

export interface AnswerTextOptions {
  index: number;
  prompt: readonly number[];
  /** Texts that end the answer, which is without them. */
  stop: readonly string[];
  /** True if the tokens are reported. */
  logprobs: boolean;
}

/** The text of an answer that grows token by token. */
export class AnswerText {
  finish_reason: SampleChoice['finish_reason'] | null = null;
  num_tokens = 0;
  private readonly decoder: Detokenizer;
  private text = '';
  private readonly logprobs: SampledToken[] = [];
  /** Characters and tokens that `delta` has returned. */
  private told = { text: 0, logprobs: 0 };

  constructor(
    tokenizer: AnswerDecoder,
    private readonly options: AnswerTextOptions,
  ) {
    this.decoder = new Detokenizer(tokenizer, options.prompt);
  }

  push({ token, logprob, top, finish }: DrawnToken): void {
    this.num_tokens += 1;
    if (finish === 'end') {
      this.end('stop');
      return;
    }
    if (this.options.logprobs) {
      const textOf = (of: number) => this.decoder.textOf(of);
      const likely = top.map((other) => ({ token: textOf(other.token), logprob: other.logprob }));
      this.logprobs.push({ token: textOf(token), logprob, top: likely });
    }
    this.add(this.decoder.push(token));
    if (this.finish_reason === null && finish === 'length') this.end('length');
  }

  /** Returns what follows since the last call, or null. What may be the beginning of a stop text is not told yet. */
  delta(): PlacedDelta | null {
    const { text: text_at, logprobs: logprobs_at } = this.told;
    const held = this.finish_reason === null ? this.mayStop() : 0;
    const text = this.text.slice(text_at, this.text.length - held);
    const logprobs = this.logprobs.slice(logprobs_at);
    if (text === '' && logprobs.length === 0) return null;
    this.told = { text: text_at + text.length, logprobs: this.logprobs.length };
    return { index: this.options.index, text_at, text, logprobs_at, logprobs };
  }

  choice(): SampleChoice {
    const { index } = this.options;
    return { index, text: this.text, finish_reason: this.finish_reason ?? 'length', logprobs: this.logprobs };
  }

  private add(text: string): void {
    const from = this.told.text;
    this.text += text;
    const places = this.options.stop.map((stop) => this.text.indexOf(stop, from)).filter((at) => at >= 0);
    if (places.length === 0) return;
    this.text = this.text.slice(0, Math.min(...places));
    this.finish_reason = 'stop';
  }

  private end(reason: SampleChoice['finish_reason']): void {
    this.add(this.decoder.end());
    this.finish_reason ??= reason;
  }

  /** Returns the length of the longest end of the text that begins a stop text. */
  private mayStop(): number {
    const lengths = this.options.stop.map((stop) => {
      for (let length = Math.min(stop.length - 1, this.text.length); length > 0; length--)
        if (this.text.endsWith(stop.slice(0, length))) return length;
      return 0;
    });
    return Math.max(0, ...lengths);
  }
}
