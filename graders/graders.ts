import type { Grade, GradeError, Grader, SingleGrader } from '../contracts/index.js';
import { parseFormula } from './formula.js';
import { type GradedItem, GraderFault, type Graders } from './grader.js';
import { graderProblems } from './problems.js';
import { checkStrings } from './string-check.js';
import { rendered } from './template.js';

/** Creates graders of one project, with processes and threads of their own. */
export function createGraders(): Graders {
  return {
    grade: async (grader, graded, signal) => {
      signal?.throwIfAborted();
      return gradeWith(grader, graded);
    },
    problems: async (grader) => graderProblems(grader),
    close: async () => undefined,
  };
}

async function gradeWith(grader: Grader, graded: GradedItem): Promise<Grade> {
  const began = performance.now();
  const errors: GradeError[] = [];
  const parts = grader.type === 'multi' ? grader.graders : { [grader.name]: grader };
  const entries = await Promise.all(
    Object.entries(parts).map(async ([name, part]) => {
      try {
        return [name, await scoreOf(part, graded)] as const;
      } catch (error) {
        if (!(error instanceof GraderFault)) throw error;
        errors.push({ grader: name, code: error.code, message: error.message });
        return [name, 0] as const;
      }
    }),
  );
  const scores = Object.fromEntries(entries);
  const reward = rewardOf(grader, scores, errors);
  return { reward, scores, errors, seconds: (performance.now() - began) / 1000, tokens: {} };
}

function rewardOf(grader: Grader, scores: Record<string, number>, errors: GradeError[]): number {
  if (grader.type !== 'multi') return scores[grader.name] ?? 0;
  const value = parseFormula(grader.calculate_output, Object.keys(grader.graders))(scores);
  if (Number.isFinite(value)) return value;
  const message = `calculate_output gives ${value} for ${JSON.stringify(scores)}`;
  errors.push({ grader: grader.name, code: 'formula_not_finite', message });
  return 0;
}

async function scoreOf(grader: SingleGrader, graded: GradedItem): Promise<number> {
  if (grader.type === 'string_check')
    return checkStrings({
      operation: grader.operation,
      input: rendered(grader.input, graded),
      reference: rendered(grader.reference, graded),
    });
  throw new Error(`graders of type ${grader.type} are not written yet`);
}
