import type { operations } from '../contracts/generated/openapi.js';
import type { Page } from '../contracts/types.js';

/** What a list can be asked for. */
export type ListQuery<Id extends ListOperation> = Omit<
  NonNullable<operations[Id]['parameters']['query']>,
  'after'
>;

type ListOperation = {
  [Id in keyof operations]: operations[Id]['parameters'] extends { query?: { after?: unknown } } ? Id : never;
}[keyof operations];

/** All entries of a list, page by page, fetched as they are wanted. */
export async function* allPages<T>(
  load: (after: string | undefined) => Promise<Page<T>>,
): AsyncGenerator<T, void> {
  let after: string | undefined;
  do {
    const page: Page<T> = await load(after);
    yield* page.data;
    after = page.next_cursor ?? undefined;
  } while (after !== undefined);
}

/** All entries of a list in an array. */
export async function collect<T>(entries: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const entry of entries) all.push(entry);
  return all;
}
