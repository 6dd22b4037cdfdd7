import type { CallFormat, SampleChoice } from '../../../contracts/index.js';
import type { AnswerChoice, AnswerToken, PositionedDelta } from '../../../contracts/queue.js';
import type { AnswerDecoder } from '../../../formats/encoding/prompt-tokenizer.js';
import type { DrawnToken } from '../../shared/native/adapter.js';
import { Detokenizer } from './detokenizer.js';

interface AnswerTextOptions {
  index: number;
  prompt: readonly number[];
  /** Stop strings. The answer ends before the first one. */
  stop: readonly string[];
  /** How the text has calls of tools; null: it has none. */
  call_format: CallFormat | null;
  /** True if tokens are reported with their log-probabilities. */
  logprobs: boolean;
}

/** One choice of an answer, which grows token by token. */
export class AnswerText {
  finishReason: SampleChoice['finish_reason'] | null = null;
  numTokens = 0;
  private readonly decoder: Detokenizer;
  private text = '';
  private readonly logprobs: AnswerToken[] = [];
  /** Numbers of characters and tokens that `delta` has returned. */
  private returned = { text: 0, logprobs: 0 };

  constructor(
    tokenizer: AnswerDecoder,
    private readonly options: AnswerTextOptions,
  ) {
    this.decoder = new Detokenizer(tokenizer, options.prompt);
  }

  push({ token, logprob, top, finish }: DrawnToken): void {
    this.numTokens += 1;
    if (finish === 'end') {
      this.end('stop');
      return;
    }
    if (this.options.logprobs) {
      const likely = top.map((other) => ({ ...this.decoder.describe(other.token), logprob: other.logprob }));
      this.logprobs.push({ ...this.decoder.describe(token), logprob, top: likely });
    }
    this.add(this.decoder.push(token));
    if (this.finishReason === null && finish === 'length') this.end('length');
  }

  /** Ends the answer, unless it has ended. */
  end(reason: SampleChoice['finish_reason']): void {
    this.add(this.decoder.end());
    this.finishReason ??= reason;
  }

  /** Returns the text and tokens since the last call, or null. Holds back text that may become a stop string. */
  delta(): PositionedDelta | null {
    const { text: textAt, logprobs: logprobsAt } = this.returned;
    const numPending = this.finishReason === null ? this.possibleStop() : 0;
    const text = this.text.slice(textAt, this.text.length - numPending);
    const logprobs = this.logprobs.slice(logprobsAt);
    if (text === '' && logprobs.length === 0) return null;
    this.returned = { text: textAt + text.length, logprobs: this.logprobs.length };
    return { ...this.common, text_at: textAt, text, logprobs_at: logprobsAt, logprobs };
  }

  choice(): AnswerChoice {
    return {
      ...this.common,
      text: this.text,
      finish_reason: this.finishReason ?? 'length',
      logprobs: this.logprobs,
    };
  }

  private get common(): Pick<AnswerChoice, 'index' | 'call_format'> {
    const { index, call_format } = this.options;
    return { index, ...(call_format !== null && { call_format }) };
  }

  private add(text: string): void {
    const from = this.returned.text;
    this.text += text;
    const positions = this.options.stop.map((stop) => this.text.indexOf(stop, from)).filter((at) => at >= 0);
    if (positions.length === 0) return;
    this.text = this.text.slice(0, Math.min(...positions));
    this.finishReason = 'stop';
  }

  /** Returns the length of the longest suffix of the text that begins a stop string. */
  private possibleStop(): number {
    const lengths = this.options.stop.map((stop) => {
      for (let length = Math.min(stop.length - 1, this.text.length); length > 0; length--)
        if (this.text.endsWith(stop.slice(0, length))) return length;
      return 0;
    });
    return Math.max(0, ...lengths);
  }
}
