import type { Redis } from 'ioredis';
import { DEFAULT_PROJECT, ZerofleetError } from '../../contracts/index.js';
import { redisError } from '../../platform/redis/connect.js';
import type { CommandRunner } from './command-runner.js';
import type { Subscriptions } from './subscriptions.js';

/** State shared by the parts of the store. */
export interface StoreContext {
  redis: Redis;
  /** Prefix of every key; core/commands/job.lua lists the keys. */
  prefix: string;
  commands: CommandRunner;
  subscriptions: Subscriptions;
}

export function jobKey(context: StoreContext, jobId: string): string {
  return `${context.prefix}:job:${jobId}`;
}

/** Returns the key of a project's index. Indexes of 'default' keep the names from before projects existed. */
export function indexKey({ prefix }: Pick<StoreContext, 'prefix'>, project: string, name: string): string {
  return project === DEFAULT_PROJECT ? `${prefix}:${name}` : `${prefix}:project:${project}:${name}`;
}

/** Returns the name of the sub-index of `name` for records named `of`; `name` itself when `of` is undefined. */
export function namedIndex(name: string, recordName: string | undefined): string {
  return recordName === undefined ? name : `${name}:name:${recordName}`;
}

export function projectsKey({ prefix }: Pick<StoreContext, 'prefix'>): string {
  return `${prefix}:projects`;
}

const PROBE_TTL_SECONDS = 60;

/**
 * Resolves once everything that was written before is acknowledged: for a reply that only read it.
 * @throws ZerofleetError `job_store_unavailable`
 */
export async function confirmed({ redis, prefix }: Pick<StoreContext, 'redis' | 'prefix'>): Promise<void> {
  await redisCall(redis.set(`${prefix}:probe`, '1', 'EX', PROBE_TTL_SECONDS));
}

export function nowText(): string {
  return new Date().toISOString();
}

/** Returns Redis' clock, Unix time in ms. All deadlines in the store use it because the clocks of clients differ. */
export async function serverTime({ redis }: Pick<StoreContext, 'redis'>): Promise<number> {
  const [seconds, microseconds] = await redisCall(redis.time());
  return Number(seconds) * 1000 + Math.floor(Number(microseconds) / 1000);
}

/** Attempts at a change before it fails because of concurrent changes. */
const CHANGE_TRIES = 10;

/**
 * Repeats an optimistic update: `attempt` reads a value and writes it only if no other client has changed it since.
 * @param subject subject of the error message
 * @param attempt returns undefined after a conflict
 * @throws ZerofleetError `job_store_unavailable` when every attempt conflicts
 */
export async function untilUnchanged<T>(subject: string, attempt: () => Promise<T | undefined>): Promise<T> {
  for (let tries = 0; tries < CHANGE_TRIES; tries += 1) {
    const done = await attempt();
    if (done !== undefined) return done;
  }
  throw new ZerofleetError('job_store_unavailable', `${subject} changes all the time; try again`);
}

/** Runs a plain Redis command with the store's errors. */
export async function redisCall<T>(call: Promise<T>): Promise<T> {
  try {
    return await call;
  } catch (error) {
    throw redisError(error);
  }
}
