/**
 * The job store: everything that the servers and the workers share. The queue (BullMQ) only states that
 * attempt k of job j is due; the object store holds the bytes.
 *
 * Atomic: each method that writes is one command or transaction, so a crash leaves it done or not done.
 * Creation writes the record, the idempotency entry and the outbox entry together. Stream sequence numbers
 * are assigned in the same command as the entry: per job they count 1, 2, 3 … without gaps, over events,
 * metrics and log lines together.
 *
 * Fenced: every write of a worker carries the execution that `claimAttempt` returned. As soon as another
 * claim, a release or a final state ends it, the write is refused with `stale_epoch` and changes nothing.
 *
 * Final: a final state is set by `finishJob`, and through it by `requestCancel` of a job that no worker holds. The end
 * of the epoch of a job that is cancelling sets one as well. Nothing changes the state afterwards, except `retryJob` of
 * a failed job.
 *
 * Every method rejects with a `ZerofleetError`; `job_store_unavailable` when Redis cannot be reached in time.
 * Writes are safe to repeat after that error unless stated otherwise.
 */
import type { Redis } from 'ioredis';
import { REDIS_PREFIX } from '../contracts/index.js';
import type { Logger } from '../platform/logging/logging.js';
import { connectRedis, disconnectRedis, openRedis } from '../platform/redis/connect.js';
import { apiKeys } from './access/api-keys.js';
import { auditLog } from './access/audit.js';
import { hubTokens } from './access/hub-tokens.js';
import { LookUps } from './access/look-ups.js';
import { principals } from './access/principals.js';
import { projects } from './access/projects.js';
import { sessions } from './access/sessions.js';
import { shares } from './access/shares.js';
import { users } from './access/users.js';
import { sessionCalls } from './calls/calls.js';
import { CommandRunner } from './core/command-runner.js';
import { confirmed, type StoreContext, serverTime } from './core/context.js';
import { Subscriptions } from './core/subscriptions.js';
import { checkpointEdits } from './edits/edits.js';
import { forwards } from './integrations/forwards.js';
import { jobAttempts } from './jobs/attempts.js';
import { jobChanges } from './jobs/changes.js';
import { jobExecution } from './jobs/execution.js';
import { checkpointHolds } from './jobs/holds.js';
import { jobRequests } from './jobs/requests.js';
import { jobRestore } from './jobs/restore.js';
import { waitLimits } from './jobs/wait-limits.js';
import { poolSlots } from './pools/pools.js';
import { scaling } from './pools/scaling.js';
import { scheduling } from './pools/scheduling.js';
import { worldRendezvous } from './pools/worlds.js';
import { datasetRecords } from './records/datasets.js';
import { garbageGuard } from './records/garbage-guard.js';
import { modelRecords } from './records/models.js';
import { sweepRecords } from './records/sweeps.js';
import { uploadSpace } from './records/uploads.js';
import { requestRepeats } from './repeats/repeats.js';
import { sampleRequests } from './samples/samples.js';
import { jobStreams } from './streams/streams.js';
import { webhooks } from './webhooks/webhooks.js';

interface JobStoreOptions {
  /** `redis://`, `rediss://` or `unix:///path`. */
  url: string;
  log?: Logger;
  /** Prefix of every key; must contain one pair of braces. Programs that share jobs use the same prefix. */
  prefix?: string;
}

/**
 * Opens the job store and waits until Redis answers.
 * @throws ZerofleetError `job_store_unavailable`, `invalid_configuration`
 */
export async function openJobStore({ url, log, prefix = REDIS_PREFIX }: JobStoreOptions): Promise<JobStore> {
  const redis = await connectRedis(url, 'commands', log);
  const subscriber = await connectRedis(url, 'subscriber', log).catch(async (error) => {
    await disconnectRedis(redis);
    throw error;
  });
  return storeOn(redis, subscriber, prefix);
}

/**
 * Opens the job store on Redis, which need not answer yet: calls fail with `job_store_unavailable` until it does.
 * @throws ZerofleetError `invalid_configuration`
 */
export function connectJobStore({ url, log, prefix = REDIS_PREFIX }: JobStoreOptions): JobStore {
  return storeOn(openRedis(url, 'commands', log), openRedis(url, 'subscriber', log), prefix);
}

export type JobStore = ReturnType<typeof storeOn>;

/** @param subscriber a connection for subscriptions only */
function storeOn(redis: Redis, subscriber: Redis, prefix: string) {
  const context: StoreContext = {
    redis,
    prefix,
    commands: new CommandRunner(redis, prefix),
    subscriptions: new Subscriptions(subscriber),
  };
  const lookUps = new LookUps(context);
  const keys = apiKeys(context, lookUps);
  const { findShare, getShare, ...shareParts } = shares(context, lookUps);
  const { getUser, ...userParts } = users(context, lookUps);
  const known = principals(lookUps, keys, { findShare, getShare }, { getUser });
  return {
    ...jobRequests(context),
    ...jobChanges(context),
    ...jobAttempts(context),
    ...jobExecution(context),
    ...jobStreams(context),
    ...datasetRecords(context),
    ...modelRecords(context),
    ...sweepRecords(context),
    ...poolSlots(context),
    ...scaling(context),
    ...scheduling(context),
    ...worldRendezvous(context),
    ...keys,
    ...shareParts,
    ...userParts,
    ...known,
    ...sessions(context, lookUps, known),
    ...auditLog(context),
    ...projects(context),
    ...hubTokens(context),
    ...uploadSpace(context),
    ...jobRestore(context),
    ...checkpointHolds(context),
    ...sessionCalls(context),
    ...checkpointEdits(context),
    ...sampleRequests(context),
    ...requestRepeats(context),
    ...garbageGuard(context),
    ...waitLimits(context),
    ...forwards(context),
    ...webhooks(context),

    /** Returns Redis' clock, Unix time in ms, which all programs share. */
    now: (): Promise<number> => serverTime(context),

    /**
     * Checks that Redis answers and accepts writes; used by readiness checks. A server that only answers reads
     * (full disk, replica) cannot accept jobs.
     */
    check: (): Promise<void> => confirmed(context),

    /** Closes the connections. Idempotent. */
    async close(): Promise<void> {
      await Promise.all([disconnectRedis(redis), disconnectRedis(subscriber)]);
    },
  };
}
