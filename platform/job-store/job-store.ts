import { REDIS_PREFIX } from '../../contracts/index.js';
import type { Logger } from '../logging.js';
import { connectRedis, disconnectRedis } from '../redis/connect.js';
import { apiKeys } from './api-keys.js';
import { jobAttempts } from './attempts.js';
import { auditLog } from './audit.js';
import { jobChanges } from './changes.js';
import { redisCall, type StoreContext, serverTime } from './context.js';
import { datasetRecords } from './datasets.js';
import { jobExecution } from './execution.js';
import { checkpointHolds } from './holds.js';
import { modelRecords } from './models.js';
import { poolPlaces } from './pools.js';
import type { JobStorePort } from './port.js';
import { projects } from './projects.js';
import { requestRepeats } from './repeats.js';
import { jobRequests } from './requests.js';
import { jobRestore } from './restore.js';
import { scaling } from './scaling.js';
import { scheduling } from './scheduling.js';
import { CommandRunner } from './scripts.js';
import { jobStreams } from './streams.js';
import { Subscriptions } from './subscriptions.js';
import { sweepGuard } from './sweep-guard.js';
import { uploadSpace } from './uploads.js';
import { waitLimits } from './wait-limits.js';
import { webhooks } from './webhooks.js';
import { worldRendezvous } from './worlds.js';

const PROBE_TTL_SECONDS = 60;

export interface JobStoreOptions {
  /** `redis://`, `rediss://` or `unix:///path`. */
  url: string;
  log?: Logger;
  /** Begins every key; must hold one pair of braces. Programs that share jobs share it. */
  prefix?: string;
}

/**
 * The job store on Redis. Needs two connections: one for commands, one for subscriptions.
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
  const context: StoreContext = {
    redis,
    prefix,
    commands: new CommandRunner(redis, prefix),
    subscriptions: new Subscriptions(subscriber),
  };
  return {
    ...jobRequests(context),
    ...jobChanges(context),
    ...jobAttempts(context),
    ...jobExecution(context),
    ...jobStreams(context),
    ...datasetRecords(context),
    ...modelRecords(context),
    ...poolPlaces(context),
    ...scaling(context),
    ...scheduling(context),
    ...worldRendezvous(context),
    ...apiKeys(context),
    ...auditLog(context),
    ...projects(context),
    ...uploadSpace(context),
    ...jobRestore(context),
    ...checkpointHolds(context),
    ...requestRepeats(context),
    ...sweepGuard(context),
    ...waitLimits(context),
    ...webhooks(context),

    now: () => serverTime(context),

    async check() {
      // A write: a server that only answers reads (full disk, replica) cannot take jobs.
      await redisCall(redis.set(`${prefix}:probe`, '1', 'EX', PROBE_TTL_SECONDS));
    },

    async close() {
      await Promise.all([disconnectRedis(redis), disconnectRedis(subscriber)]);
    },
  };
}
