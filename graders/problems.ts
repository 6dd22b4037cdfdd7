import type { FieldError, Grader, SingleGrader } from '../contracts/index.js';
import { FormulaFault, parseFormula } from './formula.js';
import { templateProblem } from './template.js';

/** Returns everything wrong with a grader that fits its schema, without running it. Pointers begin at the grader. */
export function graderProblems(grader: Grader): FieldError[] {
  const problems = partsOf(grader).flatMap(({ part, at }) => problemsOf(part, at));
  if (grader.type !== 'multi') return problems;
  return [...problems, ...formulaProblems(grader.calculate_output, Object.keys(grader.graders))];
}

/** Returns the graders that a grader combines, with their pointers; a single one is its own part. */
export function partsOf(grader: Grader): { part: SingleGrader; at: string }[] {
  if (grader.type !== 'multi') return [{ part: grader, at: '' }];
  return Object.entries(grader.graders).map(([name, part]) => ({ part, at: `/graders/${name}` }));
}

function problemsOf(grader: SingleGrader, at: string): FieldError[] {
  switch (grader.type) {
    case 'string_check':
    case 'text_similarity':
      return [
        ...templateProblems(grader.input, `${at}/input`),
        ...templateProblems(grader.reference, `${at}/reference`),
      ];
    case 'score_model': {
      const messages = grader.input.flatMap(({ content }, index) =>
        templateProblems(content, `${at}/input/${index}/content`),
      );
      const [low = 0, high = 1] = grader.range ?? [];
      return low < high
        ? messages
        : [...messages, problem(`${at}/range`, 'the first number must be the smaller one')];
    }
    case 'python':
    case 'webhook':
      return [];
  }
}

function templateProblems(template: string, pointer: string): FieldError[] {
  const reason = templateProblem(template);
  return reason === null ? [] : [problem(pointer, reason)];
}

function formulaProblems(formula: string, names: readonly string[]): FieldError[] {
  try {
    parseFormula(formula, names);
    return [];
  } catch (error) {
    if (error instanceof FormulaFault) return [problem('/calculate_output', error.message)];
    throw error;
  }
}

function problem(pointer: string, message: string): FieldError {
  return { pointer, code: 'grader_invalid', message };
}
