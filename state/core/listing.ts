/** Reads pages of one index, or of the union of several, in the order of ids. */
import { type Page, ZerofleetError } from '../../contracts/index.js';
import { redisCall, type StoreContext } from './context.js';
import type { PageRequest } from './paging.js';

const DEFAULT_PAGE_LIMIT = 20;
const MAX_PAGE_LIMIT = 100;
/** Records read per command while filtering, after the first batch. */
const BATCH = 101;
/** Records that one page scans at most. A page ends there even when few have passed its filter. */
export const MOST_LOOKED_AT = 1000;

/** Ids sort by time because they are ULIDs. */
export interface Listing<T> {
  /** Sorted sets of ids; their union is listed, newest first. */
  indexes: readonly string[];
  page: PageRequest & { id_prefix?: string };
  /** Bounds of the ids to read, lower and upper. */
  range?: { from?: string | undefined; to?: string | undefined };
  /** Loads the records of `ids` in order; null for a record that was removed meanwhile. */
  load: (ids: string[]) => Promise<(T | null)[]>;
  /** Filter for conditions that the indexes do not cover; absent: every record passes. */
  matches?: (item: T) => boolean;
}

/** @throws ZerofleetError `invalid_parameter` outside of 1..100 */
export function pageLimit(limit: number | undefined): number {
  const value = limit ?? DEFAULT_PAGE_LIMIT;
  if (!Number.isInteger(value) || value < 1 || value > MAX_PAGE_LIMIT) {
    throw new ZerofleetError('invalid_parameter', `limit must be a whole number from 1 to ${MAX_PAGE_LIMIT}`);
  }
  return value;
}

/** Returns one page of a list. `next_cursor` is the position up to which the list was scanned. */
export async function readPage<T>(context: StoreContext, listing: Listing<T>): Promise<Page<T>> {
  const limit = pageLimit(listing.page.limit);
  const found: { id: string; item: T }[] = [];
  let { after } = listing.page;
  let lookedAt = 0;
  // The record after the limit shows that there is a next page.
  for (let batch = limit + 1; found.length <= limit; batch = BATCH) {
    const ids = await idsAfter(context, listing, after, batch);
    const items = ids.length === 0 ? [] : await listing.load(ids);
    ids.forEach((id, at) => {
      const item = items[at] ?? null;
      if (item !== null && (listing.matches?.(item) ?? true)) found.push({ id, item });
    });
    after = ids.at(-1);
    lookedAt += ids.length;
    if (ids.length < batch) after = undefined;
    if (after === undefined || lookedAt >= MOST_LOOKED_AT) break;
  }
  const shown = found.slice(0, limit);
  return {
    data: shown.map(({ item }) => item),
    next_cursor: (found.length > limit ? shown.at(-1)?.id : after) ?? null,
  };
}

/** Returns the newest ids after a position of the list. */
async function idsAfter(
  { redis }: StoreContext,
  { indexes, page: { id_prefix = '' }, range = {} }: Pick<Listing<unknown>, 'indexes' | 'page' | 'range'>,
  after: string | undefined,
  count: number,
): Promise<string[]> {
  const highest = [after && `(${after}`, id_prefix && `(${id_prefix}~`, range.to && `(${range.to}`];
  const lowest = [id_prefix, range.from].flatMap((bound) => (bound ? [`[${bound}`] : []));
  const from = highest.flatMap((bound) => bound || []).sort()[0] ?? '+';
  const downTo = lowest.sort().at(-1) ?? '-';
  const lists = await Promise.all(
    indexes.map((index) => redisCall(redis.zrevrangebylex(index, from, downTo, 'LIMIT', 0, count))),
  );
  // Each index returns its first `count`, so the first `count` of the union are among them. An id that moves between
  // indexes may be in both.
  return [...new Set(lists.flat())].sort().reverse().slice(0, count);
}
