import type { Redis } from 'ioredis';
import { DEFAULT_PROJECT, type Page, ZerofleetError } from '../../contracts/index.js';
import { redisError } from '../redis/connect.js';
import type { PageRequest } from './port.js';
import type { CommandRunner } from './scripts.js';
import type { Subscriptions } from './subscriptions.js';

/** What the parts of the store share. */
export interface StoreContext {
  redis: Redis;
  /** Begins every key; see commands/include/job.lua for the keys. */
  prefix: string;
  commands: CommandRunner;
  subscriptions: Subscriptions;
}

export const DEFAULT_PAGE_LIMIT = 20;
export const MAX_PAGE_LIMIT = 100;

export function jobKey(context: StoreContext, jobId: string): string {
  return `${context.prefix}:job:${jobId}`;
}

/** An index of one project; those of 'default' have the names that they had before there were projects. */
export function indexKey({ prefix }: Pick<StoreContext, 'prefix'>, project: string, name: string): string {
  return project === DEFAULT_PROJECT ? `${prefix}:${name}` : `${prefix}:project:${project}:${name}`;
}

export function projectsKey({ prefix }: Pick<StoreContext, 'prefix'>): string {
  return `${prefix}:projects`;
}

export function nowText(): string {
  return new Date().toISOString();
}

/** Runs a plain Redis command with the store's errors. */
export async function redisCall<T>(call: Promise<T>): Promise<T> {
  try {
    return await call;
  } catch (error) {
    throw redisError(error);
  }
}

/** @throws ZerofleetError `invalid_parameter` outside of 1..100 */
export function pageLimit(limit: number | undefined): number {
  const value = limit ?? DEFAULT_PAGE_LIMIT;
  if (!Number.isInteger(value) || value < 1 || value > MAX_PAGE_LIMIT) {
    throw new ZerofleetError('invalid_parameter', `limit must be a whole number from 1 to ${MAX_PAGE_LIMIT}`);
  }
  return value;
}

/** Ids of an index after `after`, newest first, none below `down_to`. Ids sort by time because they are ULIDs. */
export function idsAfter(
  context: StoreContext,
  index: string,
  { after, down_to }: { after?: string | undefined; down_to?: string | undefined },
  count: number,
): Promise<string[]> {
  const from = after === undefined ? '+' : `(${after}`;
  return redisCall(
    context.redis.zrevrangebylex(index, from, down_to === undefined ? '-' : `[${down_to}`, 'LIMIT', 0, count),
  );
}

/**
 * One page of an index, newest first.
 * @param load the records of some ids, in their order; null for one that went away meanwhile
 */
export async function readPage<T>(
  context: StoreContext,
  index: string,
  page: PageRequest,
  load: (ids: string[]) => Promise<(T | null)[]>,
): Promise<Page<T>> {
  const limit = pageLimit(page.limit);
  // One more than asked for tells whether there is a next page.
  const ids = await idsAfter(context, index, page, limit + 1);
  const shown = ids.slice(0, limit);
  const data = shown.length === 0 ? [] : await load(shown);
  return {
    data: data.filter((item) => item !== null),
    next_cursor: ids.length > limit ? (shown.at(-1) ?? null) : null,
  };
}
