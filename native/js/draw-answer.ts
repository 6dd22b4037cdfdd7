import type { AnswerEngine, SequenceOptions } from './answer-engine.js';

/** Returns the tokens of an answer, without the end token. The engine must have no other sequence. */
export async function drawAnswer(
  engine: Pick<AnswerEngine, 'add' | 'step'>,
  prompt: readonly number[],
  options: SequenceOptions,
): Promise<number[]> {
  engine.add(0, prompt, options);
  const drawn: number[] = [];
  for (;;) {
    for (const { token, finish } of await engine.step()) {
      if (finish !== 'end') drawn.push(token);
      if (finish !== null) return drawn;
    }
  }
}
