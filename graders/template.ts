/**
 * Templates of graders: `{{item.a.b}}`, `{{item.list[0]}}`, `{{sample.output_text}}`, `{{sample.output_json.a}}`. A
 * string stands as it is, any other value as JSON.
 */
import { type GradedItem, GraderFault } from './grader.js';

const VARIABLE = /\{\{([^{}]*)\}\}/g;
const PATH = /^\s*(item|sample)((?:\.[\p{L}\p{N}_$-]+|\[\d{1,9}\])+)\s*$/u;
const STEP = /[^.[\]]+/g;
/** Variables of the namespace `sample`. */
const SAMPLE = ['output_text', 'output_json'];
/** The most characters of a text. */
export const MAX_TEXT = 1_048_576;

/** Reason to refuse a template; null if there is none. */
export function templateProblem(template: string): string | null {
  for (const [whole, path = ''] of template.matchAll(VARIABLE)) {
    const steps = stepsOf(path);
    if (steps === null) return `${whole} is no variable: write {{item.NAME}} or {{sample.output_text}}`;
    const [namespace, name = ''] = steps;
    if (namespace === 'sample' && !SAMPLE.includes(name))
      return `${whole} is not supported: sample has ${SAMPLE.join(' and ')}`;
    if (namespace === 'sample' && name === 'output_text' && steps.length > 2)
      return `${whole} has no fields: output_text is a text`;
  }
  return null;
}

/** @throws GraderFault `template_variable_missing`, `sample_not_json`, `template_text_too_long` */
export function rendered(template: string, graded: GradedItem): string {
  let length = 0;
  return template.replaceAll(VARIABLE, (whole, path: string) => {
    const text = textOf(valueAt(whole, stepsOf(path) ?? [], graded));
    length += text.length;
    if (length > MAX_TEXT)
      throw new GraderFault(
        'template_text_too_long',
        `the text has more than ${MAX_TEXT} characters at ${whole}`,
      );
    return text;
  });
}

function stepsOf(path: string): string[] | null {
  return PATH.test(path) ? [...path.trim().matchAll(STEP)].map(([step]) => step) : null;
}

function valueAt(
  whole: string,
  [namespace, ...steps]: readonly string[],
  { item, sample }: GradedItem,
): unknown {
  let value: unknown = item;
  if (namespace === 'sample') {
    const [name] = steps.splice(0, 1);
    value = name === 'output_json' ? parsed(whole, sample.output_text) : sample.output_text;
  }
  for (const step of steps) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step))
      throw new GraderFault('template_variable_missing', `${whole}: there is no ${step}`);
    value = (value as Record<string, unknown>)[step];
  }
  return value;
}

function parsed(whole: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new GraderFault('sample_not_json', `${whole}: the answer is not JSON`);
  }
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}
