/** The job store's commands without a server: calls are recorded, and the test supplies the replies. */
import type { Test } from 'tap';
import { ZerofleetError } from '../../contracts/index.js';
import type { StoreContext } from '../core/context.js';
import { initialJob, toRecord } from '../jobs/record.js';
import { testSpec } from './jobs.js';

export const AT = '2026-01-01T00:00:00.000Z';
export const RECENT = /^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
const SPEC = testSpec('ds_1');
export const JOB = { ...initialJob('job', SPEC, AT), epoch: 3, attempt: 2 };
export const RECORD = [
  Object.entries({
    ...toRecord(JOB),
    execution: '3-a',
    queue_position: '',
    preemption_request: '',
    error_count: '4',
  }).flat(),
  JOB.state_history.map((change) => JSON.stringify(change)),
];

/** Returns a store whose commands reply as the test says; the last call of each is recorded, without its time. */
export function notedCommands(t: Test, answer: () => unknown[] = () => []) {
  const calls: [name: string, call: Record<string, unknown>][] = [];
  const run = async (name: string, { at, ...call }: Record<string, unknown>) => {
    if (at !== undefined) t.match(at, RECENT);
    // The call is recorded in its encoded form.
    calls.push([name, JSON.parse(JSON.stringify({ ...call, ...(at !== undefined && { at: 'now' }) }))]);
    return answer();
  };
  const redis = {
    hash: [] as (string | null)[],
    asked: [] as unknown[],
    hmget: async (...parameters: unknown[]) => {
      redis.asked.push(parameters);
      return redis.hash;
    },
    zrem: async (...parameters: unknown[]) => redis.asked.push(parameters),
  };
  const channels: { name: string; wake: () => void; ended: boolean }[] = [];
  const subscriptions = {
    add: async (name: string, wake: () => void) => {
      const channel = { name, wake, ended: false };
      channels.push(channel);
      return async () => {
        channel.ended = true;
      };
    },
  };
  const context = { commands: { run }, redis, prefix: '{p}', subscriptions } as unknown as StoreContext;
  return { context, calls, redis, channels };
}

export const refused = (code: ConstructorParameters<typeof ZerofleetError>[0], message: string) => () => {
  throw new ZerofleetError(code, message);
};
