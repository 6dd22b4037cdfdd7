import type { Redis } from 'ioredis';
import { REDIS_PREFIX } from '../contracts/index.js';
import type { Logger } from '../platform/logging/logging.js';
import { connectRedis, disconnectRedis, openRedis } from '../platform/redis/connect.js';
import { apiKeys } from './access/api-keys.js';
import { auditLog } from './access/audit.js';
import { LookUps } from './access/look-ups.js';
import { principals } from './access/principals.js';
import { projects } from './access/projects.js';
import { sessions } from './access/sessions.js';
import { shares } from './access/shares.js';
import { users } from './access/users.js';
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
import type { JobStorePort } from './port.js';
import { datasetRecords } from './records/datasets.js';
import { modelRecords } from './records/models.js';
import { sweepGuard } from './records/sweep-guard.js';
import { uploadSpace } from './records/uploads.js';
import { requestRepeats } from './repeats/repeats.js';
import { sampleRequests } from './samples/samples.js';
import { jobStreams } from './streams/streams.js';
import { webhooks } from './webhooks/webhooks.js';

export interface JobStoreOptions {
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
export async function openJobStore({
  url,
  log,
  prefix = REDIS_PREFIX,
}: JobStoreOptions): Promise<JobStorePort> {
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
export function connectJobStore({ url, log, prefix = REDIS_PREFIX }: JobStoreOptions): JobStorePort {
  return storeOn(openRedis(url, 'commands', log), openRedis(url, 'subscriber', log), prefix);
}

/** @param subscriber a connection for subscriptions only */
function storeOn(redis: Redis, subscriber: Redis, prefix: string): JobStorePort {
  const context: StoreContext = {
    redis,
    prefix,
    commands: new CommandRunner(redis, prefix),
    subscriptions: new Subscriptions(subscriber),
  };
  const lookUps = new LookUps(context);
  const keys = apiKeys(context, lookUps);
  const shared = shares(context, lookUps);
  const signedIn = users(context, lookUps);
  const known = principals(lookUps, keys, shared, signedIn);
  return {
    ...jobRequests(context),
    ...jobChanges(context),
    ...jobAttempts(context),
    ...jobExecution(context),
    ...jobStreams(context),
    ...datasetRecords(context),
    ...modelRecords(context),
    ...poolSlots(context),
    ...scaling(context),
    ...scheduling(context),
    ...worldRendezvous(context),
    ...keys,
    ...shared,
    ...signedIn,
    ...known,
    ...sessions(context, lookUps, known),
    ...auditLog(context),
    ...projects(context),
    ...uploadSpace(context),
    ...jobRestore(context),
    ...checkpointHolds(context),
    ...checkpointEdits(context),
    ...sampleRequests(context),
    ...requestRepeats(context),
    ...sweepGuard(context),
    ...waitLimits(context),
    ...forwards(context),
    ...webhooks(context),

    now: () => serverTime(context),

    // A write: a server that only answers reads (full disk, replica) cannot accept jobs.
    check: () => confirmed(context),

    async close() {
      await Promise.all([disconnectRedis(redis), disconnectRedis(subscriber)]);
    },
  };
}
