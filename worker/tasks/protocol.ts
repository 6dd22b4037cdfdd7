import type {
  EditPayload,
  ExportPayload,
  GeneratedText,
  JobExport,
  Model,
  PlacedDelta,
  ResolvedJobSpec,
  SampleTask,
} from '../../contracts/index.js';
import type {
  CredentialsMessage,
  ObjectStoreLocation,
  RankError,
  RetryPolicy,
  SessionCredentials,
} from '../../contracts/rank-protocol.js';
import type { Manifest } from '../../formats/checkpoint/manifest.js';
import type { Architecture } from '../../job-document/index.js';
import type { PreparedTokens, TokenRequest } from './data/prepare-tokens.js';
import type { InspectOptions, MachineReport } from './inspect-machine.js';

/** Computation and bulk I/O that runs in a child process, so that the agent's event loop only supervises. */
export type TaskRequest =
  | ({ kind: 'inspect_machine' } & InspectOptions)
  | ({ kind: 'prepare_data'; object_store: ObjectStoreLocation } & TokenRequest)
  | {
      /** Answers `HostInput`s with a model until it is killed. */
      kind: 'serve';
      object_store: ObjectStoreLocation;
      weights: ServedSource | ServedBase;
      threads: number;
      /** Bytes of the GPU that the model may take, now and without others; null: it is on the CPU. */
      gpu: { free_bytes: number; total_bytes: number } | null;
      /** Interval of its `alive` messages. */
      heartbeat_ms: number;
      retry: RetryPolicy;
    }
  | {
      kind: 'export';
      object_store: ObjectStoreLocation;
      spec: ResolvedJobSpec;
      /** Key of the checkpoint's directory. */
      checkpoint: string;
      format: ExportPayload['format'];
      dtype: ExportPayload['dtype'];
      weights: ExportPayload['weights'];
      /** Key of the folder to write. */
      prefix: string;
      retry: RetryPolicy;
    }
  | ({
      /** Writes a checkpoint with another value of a tensor, but its manifest. */
      kind: 'edit';
      object_store: ObjectStoreLocation;
      spec: ResolvedJobSpec;
      /** Key of the directory of the old checkpoint. */
      checkpoint: string;
      /** Key of the new directory. */
      directory: string;
      retry: RetryPolicy;
    } & Pick<EditPayload, 'tensor' | 'tensor_state' | 'values'>);

/** A checkpoint with the document of its job, or an uploaded model. Either may have an adapter. */
export type ServedSource =
  | {
      spec: ResolvedJobSpec;
      /** Key of the checkpoint's directory. */
      checkpoint: string;
      weights: SampleTask['weights'];
    }
  | {
      model: Model;
      /** The model that an uploaded adapter is over; null: `model` is whole. */
      base_model: Model | null;
    };

/** Id of an uploaded model, or key of a checkpoint's directory. */
export type StoredWeights = { model: string } | { prefix: string };

/** Weights under adapters that are loaded apart, as their trainings see them. */
export interface ServedBase {
  base: StoredWeights;
  /** With the adapter of one of them. */
  architecture: Architecture;
  precision: ResolvedJobSpec['train']['precision'];
}

/** Messages of an agent to a host of a model. A variant is what answers: the model of the host, or an adapter over it. */
export type HostInput =
  | {
      kind: 'variant';
      /** Not used before. */
      variant: number;
      source: ServedSource;
      /** Whether the adapter of the source is loaded over the model. */
      over: boolean;
      /** To read the source with; null: those of the host. */
      credentials: SessionCredentials | null;
    }
  | { kind: 'forget'; variant: number }
  /** To a variant that was loaded. */
  | { kind: 'answer'; id: number; variant: number; request: SampleTask }
  /** Forgets a request; an unknown one is ignored. */
  | { kind: 'cancel'; id: number };

/**
 * Messages of a host of a model. `alive`: its event loop runs. `allocated`, `loaded`: the model has its memory, then its weights. `variant`,
 * `no_variant`, `forgotten`: a variant was loaded, could not be, or has released its memory. The others are about one request. Bytes are
 * those on the device.
 */
export type HostMessage =
  | { host: 'alive' }
  | { host: 'allocated'; bytes: number }
  | { host: 'loaded'; bytes: number }
  | { host: 'variant'; variant: number; bytes: number }
  | { host: 'no_variant'; variant: number; error: RankError }
  | { host: 'forgotten'; variant: number }
  | { host: 'deltas'; id: number; deltas: PlacedDelta[] }
  | { host: 'done'; id: number; sample: GeneratedText }
  | { host: 'failed'; id: number; error: RankError };

/** Messages of an agent to a task: credentials if it has a session, the request, then renewed credentials and input. */
export type TaskInput = TaskRequest | CredentialsMessage | { kind: 'host'; input: HostInput };

export interface TaskResults {
  inspect_machine: MachineReport;
  prepare_data: PreparedTokens;
  /** The written folder. */
  export: Omit<JobExport, 'checkpoint_id' | 'step'>;
  /** The written shards, and the digest of the new state. */
  edit: Pick<Manifest, 'shards' | 'state_digest'>;
  /** It ends with its process. */
  serve: never;
}

/** Progress of a task. */
export interface TaskProgress {
  done_bytes: number;
  total_bytes: number;
}

/** Messages of a task: progress, or those of a host, any number of times, then the reply. */
export type TaskMessage = { progress: TaskProgress } | HostMessage | TaskReply;

export type TaskReply =
  | { ok: true; result: TaskResults[keyof TaskResults] }
  | { ok: false; error: RankError };
