import type { AnswerEngine, AnswerOptions } from './answer-engine.js';

/** Returns the tokens of an answer, without the end token, by an engine that has nothing else to do. */
export async function drawText(
  engine: Pick<AnswerEngine, 'add' | 'step'>,
  prompt: readonly number[],
  options: AnswerOptions,
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
