import type { StoredCall } from '../../../contracts/index.js';
import { tokenizerOf } from '../../../formats/encoding/encode-batch.js';
import type { AnswerDecoder } from '../../../formats/encoding/prompt-tokenizer.js';
import { readTokenizer } from '../../../formats/encoding/tokenizer-store.js';
import { tokenizerModel } from '../../../job-document/index.js';
import { retryTransient } from '../../shared/errors.js';
import type { SampledAnswer } from '../../shared/native/adapter.js';
import { Detokenizer } from '../../tasks/serve/detokenizer.js';
import type { RankContext } from '../context.js';

type SampleCall = Extract<StoredCall, { type: 'sample' }>;

/** Ends samples at texts. The core knows tokens alone, so it draws on to `max_tokens`, and the rest is dropped. */
export class SampleEnds {
  private tokenizer: AnswerDecoder | null = null;

  constructor(private readonly ctx: Pick<RankContext, 'objects' | 'start'>) {}

  /** @throws ZerofleetError `tokenizer_invalid`; errors of the object store */
  async cut(
    { prompts, n, stop_texts: texts }: SampleCall,
    answers: readonly SampledAnswer[],
  ): Promise<readonly SampledAnswer[]> {
    if (texts.length === 0) return answers;
    this.tokenizer ??= await this.read();
    const decoder = this.tokenizer;
    return answers.map((answer, i) =>
      cutAnswer(answer, new Detokenizer(decoder, prompts[Math.floor(i / n)] ?? []), texts),
    );
  }

  private async read(): Promise<AnswerDecoder> {
    const { objects, start } = this.ctx;
    const model = tokenizerModel(start.spec.data);
    const tokenizer =
      model === null ? null : await retryTransient(() => readTokenizer(objects, model), start.save.final);
    return tokenizerOf({ tokenizer, parse_special_tokens: false });
  }
}

function cutAnswer(answer: SampledAnswer, detokenizer: Detokenizer, texts: readonly string[]): SampledAnswer {
  const { tokens, log_probs } = answer;
  const longest = Math.max(...texts.map(({ length }) => length));
  let text = '';
  for (const [i, token] of tokens.entries()) {
    const isLast = i === tokens.length - 1;
    text += detokenizer.push(token) + (isLast ? detokenizer.end() : '');
    if (texts.some((stop) => text.includes(stop)))
      return { tokens: tokens.subarray(0, i + 1), log_probs: log_probs.subarray(0, i + 1), finish: 'end' };
    text = text.slice(Math.max(0, text.length - longest));
  }
  return answer;
}
