import type { ApiKey, ExportPayload, SamplePayload, SampleReply, TraceContext } from '../contracts/index.js';
import type { DatasetSources } from '../platform/dataset-sources.js';
import type { ObjectStore } from '../platform/object-store/common/port.js';
import type { JobStorePort } from '../state/index.js';
import type { ProjectRecords } from './access/project-records.js';
import type { DatasetCopies } from './datasets/copies.js';
import type { KeyWatch } from './http/key-watch.js';
import type { Inspector } from './inspection/inspector.js';
import type { ApiLimits } from './limits.js';
import type { ApiMetrics } from './metrics/api-metrics.js';
import type { BucketTokenizers } from './models/bucket-tokenizers.js';
import type { ModelCopies } from './models/copies.js';
import type { Contract, Operation } from './operations.js';
import type { AddressPolicy } from './webhooks/addresses.js';

/** Has workers draw text from checkpoints. */
export interface SamplePort {
  /**
   * Asks a pool and waits for its answer, at most for `timeout_ms`.
   * @throws ZerofleetError `sample_timeout`, `job_store_unavailable`
   */
  sample(pool: string, payload: SamplePayload, timeout_ms: number): Promise<SampleReply>;
}

/** How far an export is that is not written yet. */
export type ExportProgress =
  | { state: 'queued' | 'running' }
  | { state: 'failed'; error: { code: string; message: string } };

/** Has workers write checkpoints in other formats. Knows nothing of what is written: the record beside the files says that. */
export interface ExportPort {
  /**
   * Asks a pool for it, unless it is asked for already; one that failed is asked for again.
   * @throws ZerofleetError `job_store_unavailable`
   */
  request(pool: string, payload: ExportPayload): Promise<ExportProgress>;
  /**
   * Null when it was never asked for, or was written.
   * @throws ZerofleetError `job_store_unavailable`
   */
  progress(pool: string, payload: ExportPayload): Promise<ExportProgress | null>;
}

/** What every handler works with. The app owns none of it: whoever opened a store closes it. */
export interface ApiServices {
  store: JobStorePort;
  objects: ObjectStore;
  samples: SamplePort;
  exports: ExportPort;
  /** Where messages of webhooks may go. */
  addresses: AddressPolicy;
  /** Where datasets may be copied from. */
  sources: DatasetSources;
  limits: ApiLimits;
  contract: Contract;
  metrics: ApiMetrics;
  /** Ends streams whose key was revoked. */
  keyWatch: KeyWatch;
  /** Makes datasets of the objects that jobs name. */
  datasetCopies: DatasetCopies;
  /** Reads what clients send in threads. */
  inspector: Inspector;
  /** The tokenizers that documents name by URI. */
  tokenizers: BucketTokenizers;
  /** Makes models of the folders and tokenizers that jobs name. */
  modelCopies: ModelCopies;
  /** Aborted when the server begins to shut down; streams end with it. */
  closing: AbortSignal;
  /** Whether new connections should go elsewhere: from the moment at which a shutdown was decided. */
  draining: AbortSignal;
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The operation of the contract that the route is; not of others. */
    operation?: Operation;
  }
  interface FastifyInstance {
    services: ApiServices;
  }
  interface FastifyRequest {
    /** The key that the request came with; null on routes that need none. */
    apiKey: ApiKey | null;
    /** Where it is in its client's trace, or in one of its own. */
    readonly trace: TraceContext;
    /** The records of the key's project. Only where a key is needed. */
    readonly records: ProjectRecords;
  }
}
