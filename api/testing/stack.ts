import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { FastifyBaseLogger, FastifyInstance, InjectOptions, LightMyRequestResponse } from 'fastify';
import { type Dataset, type Job, type JobSpec, type Scope, ZerofleetError } from '../../contracts/index.js';
import { recover } from '../../control/recovery/recover.js';
import type { ContentSource } from '../../platform/content-sources.js';
import { DatasetSources } from '../../platform/dataset-sources.js';
import { type ObjectStore, openObjectStore } from '../../platform/object-store/index.js';
import { AddressPolicy } from '../../platform/outgoing/addresses.js';
import { startTestRedis, type TestRedis } from '../../platform/testing/redis.js';
import { type JobStore, openJobStore } from '../../state/index.js';
import { buildApp } from '../app.js';
import { type TrackerServers, Trackers } from '../integrations/trackers.js';
import type { ApiLimits } from '../limits.js';
import { OidcProvider } from '../oidc/provider.js';
import type { OidcSettings } from '../oidc/settings.js';
import type { EditPort, ExportPort, SamplePort } from '../services.js';
import { ContractChecker } from './contract-checker.js';

/** A key with every scope, accepted by every test stack. */
export const ADMIN_KEY = 'zf_test_admin_key';
/** Long enough that tests of streams see no heartbeat. */
const HEARTBEAT_MS = 600_000;

export interface TestStack {
  app: FastifyInstance;
  store: JobStore;
  objects: ObjectStore;
  redis: TestRedis;
  /** Sends a request with the admin key. The reply is checked against the contract. */
  request(options: InjectOptions): Promise<LightMyRequestResponse>;
  /** Header with a key that has only these scopes. */
  headersOf(...scopes: Scope[]): Promise<{ authorization: string }>;
  /** Header with an admin key of another project. */
  headersIn(project: string): Promise<{ authorization: string }>;
  /** Uploads a text, or lines of documents. */
  upload(text: string, format?: 'text' | 'jsonl'): Promise<Dataset>;
  /** Creates a job with its own dataset. */
  createJob(changes?: Partial<JobSpec>): Promise<Job>;
  /** Number of job streams that have sent all entries and wait for more. */
  followers(): number;
  /** Clears Redis except for API keys, which exist nowhere else, and recovers from the object store. */
  loseRedis(): Promise<void>;
  /** Listens on loopback. @returns `http://127.0.0.1:port` */
  listen(): Promise<string>;
  close(): Promise<void>;
}

export const NO_WORKERS: SamplePort = {
  sample: async () => {
    throw new ZerofleetError('sample_timeout', 'there are no workers');
  },
};

const NO_EXPORTS: ExportPort = {
  request: async () => {
    throw new ZerofleetError('job_store_unavailable', 'there is no queue');
  },
  progress: async () => null,
};

const NO_EDITS: EditPort = {
  requestEdit: async () => {
    throw new ZerofleetError('job_store_unavailable', 'there is no queue');
  },
  findEdit: async () => null,
};

export interface TestStackOptions {
  limits?: Partial<ApiLimits>;
  /** Workers that answer samples; none by default. */
  samples?: SamplePort;
  exports?: ExportPort;
  edits?: EditPort;
  /** Non-public ranges that webhooks may reach. */
  webhookAllow?: string[];
  /** Configured experiment trackers; none by default. */
  trackers?: Partial<TrackerServers>;
  /** Allowed sources of copies; none by default. */
  sources?: ContentSource;
  /** OpenID provider; none by default. */
  oidc?: OidcSettings;
  /** Currency of costs; none by default. */
  currency?: string;
  /** Number of proxies in front of the API; none by default. */
  trustedProxies?: number;
  /** Log of the app; none when absent. */
  log?: FastifyBaseLogger;
  /** Replaces parts of the stores. */
  wrap?: (parts: {
    store: JobStore;
    objects: ObjectStore;
  }) => Partial<{ store: JobStore; objects: ObjectStore }>;
}

/** The whole API on a private Redis and a temporary directory. */
export async function startTestStack({
  limits,
  samples = NO_WORKERS,
  exports = NO_EXPORTS,
  edits = NO_EDITS,
  webhookAllow = [],
  trackers: servers = {},
  sources = new DatasetSources({ allowed: [], s3Endpoint: null }),
  log,
  oidc,
  currency,
  trustedProxies = 0,
  wrap,
}: TestStackOptions = {}): Promise<TestStack> {
  const dir = await mkdtemp(join(tmpdir(), 'zf-api-'));
  const redis = await startTestRedis();
  const opened = {
    store: await openJobStore({ url: redis.url }),
    objects: await openObjectStore(pathToFileURL(dir).href),
  };
  const { objects, store } = { ...opened, ...wrap?.(opened) };
  let followers = 0;
  const { waitStream } = store;
  // Replaced in place, so that the API sees the replacement as well.
  store.waitStream = async (...args) => {
    followers += 1;
    return waitStream(...args).finally(() => (followers -= 1));
  };
  await opened.store.putApiKey(ADMIN_KEY, { name: 'test', scopes: ['admin', 'operator'] });
  const addresses = new AddressPolicy(webhookAllow);
  const trackers = new Trackers({ mlflow: new Map(), wandb: new Map(), ...servers }, addresses);
  const parts = { store, objects, samples, exports, edits, addresses, trackers, sources };
  const app = buildApp({
    ...parts,
    trustedProxies,
    ...(log && { log }),
    ...(currency && { currency }),
    ...(oidc && { oidc: new OidcProvider(oidc) }),
    limits: { heartbeat_ms: HEARTBEAT_MS, ...limits },
  });
  await app.ready();
  const checker = ContractChecker.forContract(app.services.contract);

  const request = async (options: InjectOptions) => {
    const headers = { authorization: `Bearer ${ADMIN_KEY}`, ...options.headers };
    const reply = await app.inject({ ...options, headers });
    checker.check(options, reply);
    return reply;
  };
  const upload: TestStack['upload'] = async (payload, format = 'text') => {
    const headers = { 'content-type': format === 'text' ? 'text/plain' : 'application/x-ndjson' };
    const url = `/v1/datasets?name=test&format=${format}`;
    return (await request({ method: 'POST', url, headers, payload })).json<Dataset>();
  };
  return {
    app,
    store,
    objects,
    redis,
    request,
    upload,
    async headersOf(...scopes) {
      const secret = `zf_test_${scopes.join('_').replaceAll(':', '_')}`;
      await store.putApiKey(secret, { name: 'test', scopes });
      return { authorization: `Bearer ${secret}` };
    },
    async headersIn(project) {
      const secret = `zf_test_admin_of_${project}`;
      await store.putApiKey(secret, { name: 'test', scopes: ['admin'], project });
      return { authorization: `Bearer ${secret}` };
    },
    async createJob(changes = {}) {
      const dataset = await upload('to be or not to be, that is the question. '.repeat(20));
      const payload = { ...smallSpec(dataset.id), ...changes };
      const reply = await request({ method: 'POST', url: '/v1/jobs', payload });
      return reply.json<Job>();
    },
    followers: () => followers,
    async loseRedis() {
      await redis.forget({ but: ':api-key' });
      const onUnusable = (key: string, cause: Error) => {
        throw new Error(`${key} cannot be used`, { cause });
      };
      await recover({ store: opened.store, objects: opened.objects, onUnusable });
    },
    listen: () => app.listen({ host: '127.0.0.1', port: 0 }),
    async close() {
      await app.close();
      await opened.objects.close();
      await opened.store.close();
      await redis.stop();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

/** A dataset of chats, each of a question and an answer. */
export const CHATS = Array(50)
  .fill({
    messages: [
      { role: 'user', content: 'Why?' },
      { role: 'assistant', content: 'Because.' },
    ],
  })
  .map((chat) => `${JSON.stringify(chat)}\n`)
  .join('');

/** The smallest accepted document. */
export function smallSpec(dataset: string) {
  return {
    model: { preset: 'llama-tiny' },
    data: { dataset },
    train: { steps: 10 },
    resources: { ranks: { min: 1, max: 4, preferred: 2 } },
  };
}

/** A sweep of two learning rates over the smallest document with an evaluation. */
export function smallSweep(dataset: string) {
  const { data, ...spec } = smallSpec(dataset);
  return {
    name: 'rates',
    spec: { ...spec, data: { ...data, validation_fraction: 0.2 } },
    space: { 'train.optimizer.lr': { values: [0.001, 0.002] } },
  };
}

/** An object store with one method replaced. */
export function withMethod<K extends keyof ObjectStore>(
  objects: ObjectStore,
  name: K,
  method: ObjectStore[K],
): ObjectStore {
  return new Proxy(objects, {
    get: (target, property) => {
      if (property === name) return method;
      const value: unknown = Reflect.get(target, property);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}
