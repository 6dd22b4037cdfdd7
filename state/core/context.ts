import type { Redis } from 'ioredis';
import { DEFAULT_PROJECT, ZerofleetError } from '../../contracts/index.js';
import { redisError } from '../../platform/redis/connect.js';
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

export function jobKey(context: StoreContext, jobId: string): string {
  return `${context.prefix}:job:${jobId}`;
}

/** An index of one project; those of 'default' have the names that they had before there were projects. */
export function indexKey({ prefix }: Pick<StoreContext, 'prefix'>, project: string, name: string): string {
  return project === DEFAULT_PROJECT ? `${prefix}:${name}` : `${prefix}:project:${project}:${name}`;
}

/** The index of everything in another one that has this name; that other one itself without a name. */
export function namedIndex(name: string, of: string | undefined): string {
  return of === undefined ? name : `${name}:name:${of}`;
}

export function projectsKey({ prefix }: Pick<StoreContext, 'prefix'>): string {
  return `${prefix}:projects`;
}

export function nowText(): string {
  return new Date().toISOString();
}

/** Redis' clock, Unix time in ms. By it everything is due that is kept in the store: clocks of its clients differ. */
export async function serverTime({ redis }: Pick<StoreContext, 'redis'>): Promise<number> {
  const [seconds, microseconds] = await redisCall(redis.time());
  return Number(seconds) * 1000 + Math.floor(Number(microseconds) / 1000);
}

/** Of a change, each time that another one came before. */
const CHANGE_TRIES = 10;

/**
 * Changes something that is read first and written only if nobody has changed it in between.
 * @param what for the message
 * @param attempt answers undefined when somebody was faster
 * @throws ZerofleetError `job_store_unavailable` when somebody always is
 */
export async function untilUnchanged<T>(what: string, attempt: () => Promise<T | undefined>): Promise<T> {
  for (let tries = 0; tries < CHANGE_TRIES; tries += 1) {
    const done = await attempt();
    if (done !== undefined) return done;
  }
  throw new ZerofleetError('job_store_unavailable', `${what} changes all the time; try again`);
}

/** Runs a plain Redis command with the store's errors. */
export async function redisCall<T>(call: Promise<T>): Promise<T> {
  try {
    return await call;
  } catch (error) {
    throw redisError(error);
  }
}
