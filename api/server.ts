import { setTimeout as sleep } from 'node:timers/promises';
import { startSchedulerThread } from '../control/scheduling/thread.js';
import type { Config } from '../platform/config/config.js';
import { ContentSources } from '../platform/content-sources.js';
import { DatasetSources, refuseOwnStore } from '../platform/dataset-sources.js';
import { HubSource } from '../platform/hub/source.js';
import type { Logger } from '../platform/logging/logging.js';
import { type ObjectStore, openObjectStore } from '../platform/object-store/index.js';
import { keepsCreateOnly } from '../platform/object-store/probe.js';
import { AddressPolicy } from '../platform/outgoing/addresses.js';
import { connectJobStore, type JobStore, startWebhookRelay } from '../state/index.js';
import { SampleQueue } from './answers/sample-queue.js';
import { buildApp } from './app.js';
import { acceptFirstKey, type FirstKey, readFirstKey } from './first-key.js';
import { collectPeriodically } from './garbage-collector.js';
import { Forwarder } from './integrations/forwarder.js';
import { Trackers } from './integrations/trackers.js';
import { finishDeletions } from './jobs/changes/deletions.js';
import { ExportQueue } from './jobs/export-queue.js';
import { watchWaits } from './jobs/wait-watch.js';
import type { ApiLimits } from './limits.js';
import { OidcProvider } from './oidc/provider.js';
import { oidcSettings } from './oidc/settings.js';
import { runSweeps } from './sweeps/runner.js';
import { WebhookSender } from './webhooks/sender.js';

interface ApiServerOptions {
  config: Config;
  /** Redis URL: `config.redis_url`, or the embedded server's address. */
  redisUrl: string;
  /** Object store URL: `config.object_store`, or a directory below the data directory. */
  objectStoreUrl: string;
  log: Logger;
  limits?: Partial<ApiLimits>;
}

export interface ApiServer {
  /** `http://host:port`, with the actual port. */
  readonly url: string;
  /** The admin key that is accepted from the start. */
  readonly firstKey: FirstKey;
  /**
   * Reports not ready, continues for `ZEROFLEET_DRAIN_SECONDS`, then ends streams, waits for open requests and closes
   * everything that was opened. Idempotent.
   */
  close(): Promise<void>;
}

/** Closes a resource that was opened. */
type Closer = () => Promise<unknown>;

/**
 * Opens the stores, starts the scheduler and listens. Redis may be away: requests that need it fail until it answers.
 *
 * @throws ZerofleetError `invalid_configuration`; ObjectStoreError. Opened resources are closed then.
 */
export async function startApi({
  config,
  redisUrl,
  objectStoreUrl,
  log,
  limits,
}: ApiServerOptions): Promise<ApiServer> {
  const closers: Closer[] = [];
  try {
    const store = connectJobStore({ url: redisUrl, log });
    closers.push(() => store.close());
    const objects = await openObjectStore(objectStoreUrl, {
      s3Endpoint: config.s3_endpoint,
      // A configured directory must exist: a typing error or a missing mount would otherwise create another one.
      create: config.object_store === null,
    });
    closers.push(() => objects.close());
    const probed = reportObjectStoreFaults(objects, log);
    closers.push(() => probed);
    const settings = oidcSettings(config);
    const oidc = settings && new OidcProvider(settings);
    refuseOwnStore(config.dataset_buckets, objectStoreUrl);
    const sources = contentSources(config, store, closers);
    const { s3_endpoint: s3Endpoint, log_level: level } = config;
    const scheduler = await startSchedulerThread({ redisUrl, objectStoreUrl, s3Endpoint, level }, log);
    closers.push(() => scheduler.close());
    const addresses = new AddressPolicy(config.webhook_allow);
    const webhooks = new WebhookSender({ redisUrl, store, policy: addresses, log });
    closers.push(() => webhooks.close());
    const webhookRelay = startWebhookRelay({
      url: redisUrl,
      deliver: (entry) => webhooks.deliver(entry),
      log,
    });
    closers.push(() => webhookRelay.stop());
    const servers = { mlflow: config.mlflow_credentials, wandb: config.wandb_credentials };
    const trackers = new Trackers(servers, addresses);
    const samples = new SampleQueue(store, log);
    closers.push(() => samples.close());
    const forwarder = new Forwarder({ store, trackers, samples, log });
    closers.push(() => forwarder.close());
    const waits = watchWaits({ store, objects, log });
    closers.push(() => waits.close());
    const deletions = finishDeletions({ store, objects, log });
    closers.push(() => deletions.close());
    const collector = collectPeriodically({ store, objects, log });
    closers.push(() => collector.close());
    const sweeps = runSweeps({ store, objects, log });
    closers.push(() => sweeps.close());
    const exports = new ExportQueue(redisUrl, log);
    closers.push(() => exports.close());
    const firstKey = await readFirstKey(config);
    const accepting = await acceptFirstKey(store, firstKey, log);
    closers.push(() => accepting.close());

    const parts = { store, objects, samples, exports, edits: exports, addresses, trackers, sources, log };
    const draining = new AbortController();
    const { trusted_proxies: trustedProxies } = config;
    const app = buildApp({
      ...parts,
      ...{ oidc, trustedProxies, currency: config.currency, draining: draining.signal },
      ...{ graderPython: config.grader_python, graderServers: config.grader_credentials },
      ...(limits && { limits }),
    });
    closers.push(() => app.close());
    closers.push(() => drain(draining, config.drain_seconds));
    const url = await app.listen({ host: config.host, port: config.port });
    const close = once(() => closeAll(closers));
    return { url, firstKey, close };
  } catch (error) {
    await closeAll(closers);
    throw error;
  }
}

/** Buckets and, unless it is switched off, the Hub. */
function contentSources(config: Config, store: JobStore, closers: Closer[]): ContentSources {
  const buckets = new DatasetSources({ allowed: config.dataset_buckets, s3Endpoint: config.s3_endpoint });
  closers.push(() => buckets.close());
  const { hub_endpoint: endpoint } = config;
  const hub = endpoint === null ? null : new HubSource({ endpoint, token: store.findHubToken });
  return new ContentSources({ buckets, hub });
}

/** Load balancers see that this server is not ready and send new requests elsewhere before it refuses any. */
async function drain(draining: AbortController, seconds: number): Promise<void> {
  draining.abort();
  if (seconds > 0) await sleep(seconds * 1000);
}

/** Closes in the reverse order of opening. */
async function closeAll(closers: readonly Closer[]): Promise<void> {
  for (const close of closers.toReversed()) await close();
}

function once(task: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined;
  return () => {
    running ??= task();
    return running;
  };
}

/** Logs an unavailable object store. The server starts without it and works once the store answers. */
async function reportObjectStoreFaults(objects: ObjectStore, log: Logger): Promise<void> {
  if (!objects.url.startsWith('s3:')) return;
  try {
    if (await keepsCreateOnly(objects)) return;
    log.error(
      { object_store: objects.url },
      'the object store overwrites objects in spite of If-None-Match: *, so that two workers may commit the same checkpoint; use a server that supports it',
    );
  } catch (error) {
    log.warn({ err: error, object_store: objects.url }, 'the object store could not be probed');
  }
}
