/** Graders of answers, as the form begins them. */
import type { Grader, StringCheckGrader, TextSimilarityGrader } from '../../../contracts/types.js';
import { isObject } from './draft.js';
import { formOf, isAnswer, parsed } from './read-as.js';

type Kind = Grader['type'];

interface GraderKind {
  label: string;
  /** A grader to begin with. @param field field of a line that has the right answer */
  begun: (field: string) => Grader;
}

const INPUT = '{{sample.output_text}}';

const exact = (field: string): StringCheckGrader => ({
  type: 'string_check',
  name: 'exact',
  operation: 'eq',
  input: INPUT,
  reference: `{{item.${field}}}`,
});

const SHORT = 'def grade(sample, item):\n    return len(sample["output_text"]) < 100\n';
const JUDGE = `Rate the answer from 0 to 1. Question: {{item.prompt}} Answer: ${INPUT}`;

/** Kinds that the contract knows, the usual ones first. */
export const GRADERS: Readonly<Record<Kind, GraderKind>> = {
  string_check: { label: 'comparison of texts', begun: exact },
  text_similarity: {
    label: 'similarity of texts',
    begun: (field) => ({
      type: 'text_similarity',
      name: 'similar',
      evaluation_metric: 'fuzzy_match',
      input: INPUT,
      reference: `{{item.${field}}}`,
    }),
  },
  python: {
    label: 'Python function',
    begun: (field) => ({
      type: 'python',
      name: 'python',
      source: `def grade(sample, item):\n    return sample["output_text"].strip() == str(item["${field}"])\n`,
    }),
  },
  multi: {
    label: 'formula over several graders',
    begun: (field) => ({
      type: 'multi',
      name: 'together',
      graders: { exact: exact(field), short: { type: 'python', name: 'short', source: SHORT } },
      calculate_output: '0.9 * exact + 0.1 * short',
    }),
  },
  score_model: {
    label: 'score of a model',
    begun: () => ({
      type: 'score_model',
      name: 'judge',
      server: 'main',
      model: 'MODEL',
      input: [{ role: 'user', content: JUDGE }],
    }),
  },
  webhook: {
    label: 'webhook of the project',
    begun: () => ({ type: 'webhook', name: 'webhook', webhook: 'wh_…' }),
  },
};

export const OPERATIONS: Readonly<Record<StringCheckGrader['operation'], string>> = {
  eq: 'equal',
  ne: 'not equal',
  like: 'contains',
  ilike: 'contains, in any case',
};

export const SIMILARITIES: Readonly<Record<TextSimilarityGrader['evaluation_metric'], string>> = {
  fuzzy_match: 'fuzzy match',
  bleu: 'BLEU',
  gleu: 'GLEU',
  meteor: 'METEOR',
  rouge_1: 'ROUGE-1',
  rouge_2: 'ROUGE-2',
  rouge_3: 'ROUGE-3',
  rouge_4: 'ROUGE-4',
  rouge_5: 'ROUGE-5',
  rouge_l: 'ROUGE-L',
};

/** The kind of a grader in a draft; undefined if it has none that is known. */
export function kindOf(grader: unknown): Kind | undefined {
  const type = isObject(grader) ? grader.type : undefined;
  return (Object.keys(GRADERS) as Kind[]).find((kind) => kind === type);
}

/** A line of data that a grader reads, as its fields. @param documents JSON of the first documents */
export const firstLine = (documents: readonly string[]) =>
  documents.map(parsed).find((line) => line !== null) ?? null;

const USUAL = 'answer';

/** Returns the field that most likely has the right answer. @param documents JSON of the first documents */
export function answerField(documents: readonly string[]): string {
  const names = Object.keys(firstLine(documents) ?? {});
  const form = formOf(documents);
  if (form === null || names.includes(USUAL)) return USUAL;
  return form.ignored[0] ?? form.fields.find(isAnswer)?.name ?? USUAL;
}

const VARIABLE = /\{\{\s*item\.([\p{L}\p{N}_$-]+)/gu;

/** Returns the fields that the templates of a grader name and a line lacks. */
export function missingFields(grader: unknown, line: Readonly<Record<string, unknown>>): string[] {
  const named = [...JSON.stringify(grader ?? null).matchAll(VARIABLE)].map(([, name = '']) => name);
  return [...new Set(named)].filter((name) => !Object.hasOwn(line, name));
}
