/** Reads lists: pages of an index, or of several, that is in the order of its ids. */
import { type Page, ZerofleetError } from '../../contracts/index.js';
import { redisCall, type StoreContext } from './context.js';
import type { PageRequest } from './paging.js';

const DEFAULT_PAGE_LIMIT = 20;
const MAX_PAGE_LIMIT = 100;
/** Records read at once while a list is filtered, after the first ones. */
const BATCH = 101;
/** Records that one page looks at. A page ends there, however few have passed its filter. */
export const MOST_LOOKED_AT = 1000;

/** Ids sort by time because they are ULIDs. */
export interface Listing<T> {
  /** Sorted sets of ids; their union is listed, newest first. */
  indexes: readonly string[];
  page: PageRequest & { id_prefix?: string };
  /** Nothing below the first or above the second is read. */
  range?: { from?: string | undefined; to?: string | undefined };
  /** The records of some ids, in their order; null for one that went away meanwhile. */
  load: (ids: string[]) => Promise<(T | null)[]>;
  /** What the indexes leave to be looked at in the record. Everything passes when absent. */
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

/** One page of a list. Its `next_cursor` is the place up to which the list was looked at. */
export async function readPage<T>(context: StoreContext, listing: Listing<T>): Promise<Page<T>> {
  const limit = pageLimit(listing.page.limit);
  const found: { id: string; item: T }[] = [];
  let { after } = listing.page;
  let looked_at = 0;
  // One more than asked for tells whether there is a next page.
  for (let batch = limit + 1; found.length <= limit; batch = BATCH) {
    const ids = await idsAfter(context, listing, after, batch);
    const items = ids.length === 0 ? [] : await listing.load(ids);
    ids.forEach((id, at) => {
      const item = items[at] ?? null;
      if (item !== null && (listing.matches?.(item) ?? true)) found.push({ id, item });
    });
    after = ids.at(-1);
    looked_at += ids.length;
    if (ids.length < batch) after = undefined;
    if (after === undefined || looked_at >= MOST_LOOKED_AT) break;
  }
  const shown = found.slice(0, limit);
  return {
    data: shown.map(({ item }) => item),
    next_cursor: (found.length > limit ? shown.at(-1)?.id : after) ?? null,
  };
}

/** The newest ids after a place of the list. */
async function idsAfter(
  { redis }: StoreContext,
  { indexes, page: { id_prefix = '' }, range = {} }: Pick<Listing<unknown>, 'indexes' | 'page' | 'range'>,
  after: string | undefined,
  count: number,
): Promise<string[]> {
  const highest = [after && `(${after}`, id_prefix && `(${id_prefix}~`, range.to && `(${range.to}`];
  const lowest = [id_prefix, range.from].flatMap((bound) => (bound ? [`[${bound}`] : []));
  const from = highest.flatMap((bound) => bound || []).sort()[0] ?? '+';
  const down_to = lowest.sort().at(-1) ?? '-';
  const lists = await Promise.all(
    indexes.map((index) => redisCall(redis.zrevrangebylex(index, from, down_to, 'LIMIT', 0, count))),
  );
  // Each has its first `count`, so the first `count` of all are among them. What moves from one to another may be in both.
  return [...new Set(lists.flat())].sort().reverse().slice(0, count);
}
