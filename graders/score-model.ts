import type { ScoreModelGrader } from '../contracts/index.js';
import { parsedJson } from '../platform/parsed-json.js';
import { Check, Type } from '../platform/schema.js';
import { GraderFault, type GraderOutside } from './grader.js';
import type { Rendering } from './template.js';

const Answer = new Check(Type.Object({ result: Type.Number() }));
/** Characters of an answer that an error repeats. */
const SHOWN = 200;

/** The model reasons first, because its result depends on what it has written. */
const schemaOf = (low: number, high: number) => ({
  type: 'object',
  additionalProperties: false,
  required: ['reasoning', 'result'],
  properties: {
    reasoning: { type: 'string' },
    result: { type: 'number', description: `The score, from ${low} to ${high}.` },
  },
});

/** Returns the score and the tokens that it took. @throws GraderFault; the signal's reason */
export async function askScore(
  { model, server, input, range, sampling_params: sampling = {} }: ScoreModelGrader,
  rendering: Rendering,
  { askModel }: Pick<GraderOutside, 'askModel'>,
  signal: AbortSignal,
): Promise<{ score: number; tokens: number }> {
  const [low = 0, high = 1] = range ?? [];
  const { text, refusal, tokens } = await askModel(
    {
      model,
      server: server ?? null,
      messages: input.map(({ role, content }) => ({ role, content: rendering.render(content) })),
      max_tokens: sampling.max_completions_tokens ?? 1024,
      temperature: sampling.temperature ?? 0,
      top_p: sampling.top_p ?? 1,
      seed: sampling.seed ?? 1,
      schema: schemaOf(low, high),
    },
    signal,
  );
  if (refusal !== null)
    throw new GraderFault('model_refused', `the model refused: ${refusal.slice(0, SHOWN)}`);
  return { score: scoreOf(text, low, high), tokens };
}

function scoreOf(text: string, low: number, high: number): number {
  const answer = parsedJson(text);
  if (!Answer.fits(answer)) {
    const message = `the model must answer with a JSON object whose field result is a number; it wrote ${JSON.stringify(text.slice(0, SHOWN))}`;
    throw new GraderFault('model_answer_invalid', message);
  }
  if (answer.result >= low && answer.result <= high) return answer.result;
  throw new GraderFault(
    'model_answer_invalid',
    `the model scored ${answer.result}, outside of ${low} to ${high}`,
  );
}
