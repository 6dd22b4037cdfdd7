import type { operations } from '../contracts/generated/openapi.js';
import type { Page } from '../contracts/types.js';
import { ApiError } from './errors.js';

/** What a list can be asked for. */
export type ListQuery<Id extends ListOperation> = Omit<
  NonNullable<operations[Id]['parameters']['query']>,
  'after'
>;

type ListOperation = {
  [Id in keyof operations]: operations[Id]['parameters'] extends { query?: { after?: unknown } } ? Id : never;
}[keyof operations];

/**
 * All entries of a list, page by page, fetched as they are wanted. What is lost with the server's Redis between two pages ends there; what
 * the server knows then follows from its beginning.
 * @param begin where the first page begins; at the beginning of the list when absent
 * @throws ApiError `position_lost` when `begin` is of what was lost
 */
export async function* allPages<T>(
  load: (after: string | undefined) => Promise<Page<T>>,
  begin?: string,
): AsyncGenerator<T, void> {
  let after = begin;
  for (;;) {
    let page: Page<T>;
    try {
      page = await load(after);
    } catch (error) {
      if (after === begin || !(error instanceof ApiError && error.code === 'position_lost')) throw error;
      after = undefined;
      continue;
    }
    yield* page.data;
    if (page.next_cursor === null) return;
    after = page.next_cursor;
  }
}

/** All entries of a list in an array. */
export async function collect<T>(entries: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const entry of entries) all.push(entry);
  return all;
}
