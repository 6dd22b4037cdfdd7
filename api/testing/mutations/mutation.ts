import type { InjectOptions, LightMyRequestResponse } from 'fastify';
import type { TestStack } from '../stack.js';

/** A request that may change something, and what it has done so far, as a number that one effect changes by one. */
export interface Prepared {
  request: InjectOptions;
  /** @param answered what the request was answered so far */
  effects(answered: readonly LightMyRequestResponse[]): Promise<number>;
}

/** An operation that may change something. */
export interface Mutation {
  /** Of the answer when it did. */
  status: number;
  prepare(stack: TestStack): Promise<Prepared>;
  /** Its answer is not repeated. */
  showsSecret?: true;
  /** Its key is kept in the step that has the effect: all repetitions are answered alike, whenever they come. */
  isAtomic?: true;
}

/** How many things a list has. */
export const numOf = (stack: TestStack, url: string) => async () =>
  (await stack.request({ url: `${url}?limit=100` })).json<{ data: unknown[] }>().data.length;

export const TEXT = 'to be or not to be, that is the question. '.repeat(20);
