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
/** The most variables of a template. */
export const MAX_VARIABLES = 256;

/** Reason to refuse a template; null if there is none. */
export function templateProblem(template: string): string | null {
  const count = [...template.matchAll(VARIABLE)].length;
  if (count > MAX_VARIABLES)
    return `a template has at most ${MAX_VARIABLES} variables; this one has ${count}`;
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

/** Inserts the values of one graded item into templates. */
export class Rendering {
  /** The answer's JSON; undefined before the first use, null for an answer that is not JSON. */
  private answer: { json: unknown } | null | undefined;

  constructor(private readonly graded: GradedItem) {}

  /** @throws GraderFault `template_variable_missing`, `sample_not_json`, `template_text_too_long` */
  render(template: string): string {
    let length = 0;
    return template.replaceAll(VARIABLE, (whole, path: string) => {
      const text = textOf(this.valueAt(whole, stepsOf(path) ?? []));
      length += text.length;
      if (length > MAX_TEXT)
        throw new GraderFault(
          'template_text_too_long',
          `the text has more than ${MAX_TEXT} characters at ${whole}`,
        );
      return text;
    });
  }

  private valueAt(whole: string, [namespace, ...steps]: readonly string[]): unknown {
    const { item, sample } = this.graded;
    let value: unknown = item;
    if (namespace === 'sample') {
      const [name] = steps.splice(0, 1);
      value = name === 'output_json' ? this.answerJson(whole) : sample.output_text;
    }
    for (const step of steps) {
      if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step))
        throw new GraderFault('template_variable_missing', `${whole}: there is no ${step}`);
      value = (value as Record<string, unknown>)[step];
    }
    return value;
  }

  private answerJson(whole: string): unknown {
    if (this.answer === undefined) this.answer = parsed(this.graded.sample.output_text);
    if (this.answer === null) throw new GraderFault('sample_not_json', `${whole}: the answer is not JSON`);
    return this.answer.json;
  }
}

function stepsOf(path: string): string[] | null {
  return PATH.test(path) ? [...path.trim().matchAll(STEP)].map(([step]) => step) : null;
}

function parsed(text: string): { json: unknown } | null {
  try {
    return { json: JSON.parse(text) };
  } catch {
    return null;
  }
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}
