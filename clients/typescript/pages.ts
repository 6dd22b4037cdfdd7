import type { operations } from '../../contracts/generated/openapi.js';
import type { Page } from '../../contracts/types.js';
import { ApiError } from './errors.js';

/** Query of a list. */
export type ListQuery<Id extends ListOperation> = Omit<
  NonNullable<operations[Id]['parameters']['query']>,
  'after'
>;

type ListOperation = {
  [Id in keyof operations]: operations[Id]['parameters'] extends { query?: { after?: unknown } } ? Id : never;
}[keyof operations];

/**
 * All entries of a list, fetched page by page on demand. If a loss of Redis between two pages invalidates the position,
 * the list continues from the beginning of the recovered entries.
 * @param begin position of the first page; the beginning of the list when absent
 * @throws ApiError `position_lost` when `begin` itself is invalidated
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

/** All entries of a list in an array, or the first `limit` of them. */
export async function collect<T>(entries: AsyncIterable<T>, limit = Number.POSITIVE_INFINITY): Promise<T[]> {
  const all: T[] = [];
  for await (const entry of entries) {
    all.push(entry);
    if (all.length === limit) break;
  }
  return all;
}
