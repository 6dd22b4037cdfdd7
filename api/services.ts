import type {
  AnswerDelta,
  EditPayload,
  ExportPayload,
  SamplePayload,
  SampleReply,
  TraceContext,
} from '../contracts/index.js';
import type { ModelServers } from '../graders/model-servers.js';
import type { GraderRuntime } from '../graders/runtime.js';
import type { ContentSource } from '../platform/content-sources.js';
import type { ObjectStore } from '../platform/object-store/common/port.js';
import type { AddressPolicy } from '../platform/outgoing/addresses.js';
import type { JobStore, Principal } from '../state/index.js';
import type { ProjectRecords } from './access/project-records.js';
import type { DatasetCopies } from './datasets/copies.js';
import type { RequestSession } from './http/authenticate.js';
import type { KeyWatch } from './http/key-watch.js';
import type { ProjectGate } from './http/project-gate.js';
import type { Inspector } from './inspection/inspector.js';
import type { Trackers } from './integrations/trackers.js';
import type { ApiLimits } from './limits.js';
import type { ApiMetrics } from './metrics/api-metrics.js';
import type { BucketTokenizers } from './models/bucket-tokenizers.js';
import type { ModelCopies } from './models/copies.js';
import type { OidcProvider } from './oidc/provider.js';
import type { Contract, Operation } from './operations.js';

/** A request for an answer, while it waits. */
export interface SampleCall {
  /** Time without a worker that works on the request. */
  timeout_ms: number;
  /** Time for which the model may be loading. */
  loading_ms: number;
  /** True if the request named the pool, which must exist then. */
  is_named: boolean;
  /** Aborted when nobody waits any more. */
  signal: AbortSignal;
  /** Called when a worker begins with the answer; more than once if workers are lost. */
  onStart?(): void;
  /** Called with each part of the texts, once. */
  onDeltas?(deltas: AnswerDelta[]): void;
}

/** Requests samples from checkpoints of workers. */
export interface SamplePort {
  /**
   * Calls a pool and waits for its answer.
   * @throws ZerofleetError `sample_timeout`, `model_loading`, `sample_queue_full`, `pool_not_found`, `workers_lost`,
   *   `rank_lost`, `job_store_unavailable`; the signal's reason
   */
  sample(pool: string, payload: SamplePayload, call: SampleCall): Promise<SampleReply>;
}

/** Progress of an unfinished export. */
export type ExportProgress =
  | { state: 'queued' | 'running' }
  | { state: 'failed'; error: { code: string; message: string } };

/** Progress of the change of a tensor. */
export type EditProgress = ExportProgress | { state: 'succeeded'; checkpoint_id: string };

/**
 * Requests exports of checkpoints from workers. Finished exports are not known here: their record is beside the files.
 */
export interface ExportPort {
  /**
   * Requests an export from a pool, unless it is in progress; a failed export is requested again.
   * @throws ZerofleetError `job_store_unavailable`
   */
  request(pool: string, payload: ExportPayload): Promise<ExportProgress>;
  /** Null for an export that was never requested or is written. @throws ZerofleetError `job_store_unavailable` */
  progress(pool: string, payload: ExportPayload): Promise<ExportProgress | null>;
}

/** Requests changes of tensors from workers. */
export interface EditPort {
  /**
   * Requests a change from a pool, unless it is in progress or complete; a failed one is requested again.
   * @throws ZerofleetError `job_store_unavailable`
   */
  requestEdit(pool: string, payload: EditPayload): Promise<EditProgress>;
  /** Null for an unknown change. @throws ZerofleetError `job_store_unavailable` */
  findEdit(pool: string, editId: string): Promise<FoundEdit | null>;
}

/** A change of a tensor that was requested. */
export interface FoundEdit {
  payload: EditPayload;
  progress: EditProgress;
}

/** Dependencies of every handler. The app owns none of them: the caller that opened a store closes it. */
export interface ApiServices {
  store: JobStore;
  objects: ObjectStore;
  samples: SamplePort;
  exports: ExportPort;
  edits: EditPort;
  /** Allowed addresses of webhook messages. */
  addresses: AddressPolicy;
  /** Servers to which jobs forward their metrics. */
  trackers: Trackers;
  /** ISO 4217 code of the currency of costs; null if none is set. */
  currency: string | null;
  /** Allowed sources of copies. */
  sources: ContentSource;
  limits: ApiLimits;
  contract: Contract;
  metrics: ApiMetrics;
  /** Null without an OpenID provider. */
  oidc: OidcProvider | null;
  /** Ends streams whose key was revoked, or whose session has ended. */
  keyWatch: KeyWatch;
  /** Creates datasets from the objects that jobs refer to. */
  datasetCopies: DatasetCopies;
  /** Parses client content in threads. */
  inspector: Inspector;
  /** Processes and threads of graders, and the servers whose models they may ask. */
  graders: GraderRuntime;
  graderServers: ModelServers;
  /** Grades in progress. */
  grades: ProjectGate;
  /** Tokenizers that documents refer to by URI. */
  tokenizers: BucketTokenizers;
  /** Creates models from the folders and tokenizers that jobs refer to. */
  modelCopies: ModelCopies;
  /** Answers with tensors in progress: each one holds memory for as long as its client reads. */
  tensors: ProjectGate;
  /** Requests with a raw body, which is held in memory until it is stored. */
  rawBodies: ProjectGate;
  /** Aborted when the server begins to shut down; streams end with it. */
  closing: AbortSignal;
  /** Aborted when a shutdown is decided: new connections should go to another server. */
  draining: AbortSignal;
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The contract's operation of the route; absent on other routes. */
    operation?: Operation;
    /** True for a route of the translated API. */
    isTranslated?: boolean;
  }
  interface FastifyInstance {
    services: ApiServices;
  }
  interface FastifyRequest {
    /** The operation of the route, or that which its body has chosen; null if the contract has none. */
    operation: Operation | null;
    /** Who sends the request; null on routes that are open to all. */
    principal: Principal | null;
    /** The browser session that stands for the principal; null for a request with a bearer token. */
    session: RequestSession | null;
    /** Trace context of the request: a child of the client's trace, or a new one. */
    readonly trace: TraceContext;
    /** Records of the principal's project. Only on routes that need one. */
    readonly records: ProjectRecords;
  }
}
