/** Variables that the template of every chat has. */
import { newScope, type Scope } from '../template/library.js';
import { textOf } from '../template/values.js';
import { LEARN_BEGIN, LEARN_END } from './chat-origins.js';
import { LEARN_BEGIN_VARIABLE, LEARN_END_VARIABLE } from './parsed-template.js';
import { strftime } from './strftime.js';

/** Functions that the library defines for all templates; `strftime_now` depends on the job. */
const GLOBALS: Readonly<Record<string, unknown>> = {
  ...Object.fromEntries(['true', 'True'].map((name) => [name, true])),
  ...Object.fromEntries(['false', 'False'].map((name) => [name, false])),
  ...Object.fromEntries(['none', 'None'].map((name) => [name, null])),
  raise_exception: (message: string) => {
    throw new Error(message);
  },
  range: (first: number, last?: number, step = 1) => {
    const [begin, end] = last === undefined ? [0, first] : [first, last];
    return Array.from({ length: Math.max(0, Math.ceil((end - begin) / step)) }, (_, i) => begin + i * step);
  },
};

/**
 * @param tokens special tokens by name
 * @param date date of `strftime_now`; null: there is no such function
 */
export function templateVariables(tokens: Readonly<Record<string, string>>, date: string | null): Scope {
  const scope = newScope();
  const variables = {
    ...GLOBALS,
    // A variable that transformers always defines.
    documents: null,
    ...tokens,
    ...(date !== null && { strftime_now: (format: string) => strftime(date, format) }),
  };
  for (const [name, value] of Object.entries(variables)) scope.set(name, value);
  scope.setVariable(LEARN_BEGIN_VARIABLE, textOf('', LEARN_BEGIN));
  scope.setVariable(LEARN_END_VARIABLE, textOf('', LEARN_END));
  return scope;
}
