import type { InjectOptions, LightMyRequestResponse } from 'fastify';
import type { TestStack } from '../stack.js';

/** A mutating request and a measure of its effects, which each effect changes by one. */
interface Prepared {
  request: InjectOptions;
  /** @param answered answers to the request so far */
  effects(answered: readonly LightMyRequestResponse[]): Promise<number>;
}

/** A mutating operation. */
export interface Mutation {
  /** Status of a successful answer. */
  status: number;
  prepare(stack: TestStack): Promise<Prepared>;
  /** Its answer is not repeated. */
  showsSecret?: true;
  /** Its key is stored atomically with the effect: all repetitions get the same answer at any time. */
  isAtomic?: true;
}

/** Number of items of a list. */
export const numOf = (stack: TestStack, url: string) => async () =>
  (await stack.request({ url: `${url}?limit=100` })).json<{ data: unknown[] }>().data.length;

export const TEXT = 'to be or not to be, that is the question. '.repeat(20);
