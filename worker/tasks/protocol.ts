import type { Architecture } from '../../contracts/architecture.js';
import type {
  EditPayload,
  ExportPayload,
  GeneratedText,
  JobExport,
  Model,
  PositionedDelta,
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
import type { PreparedTokens, TokenRequest } from './data/prepare-tokens.js';
import type { InspectOptions, MachineReport } from './inspect-machine.js';

/** Computation and bulk I/O that runs in a child process, so that the agent's event loop only supervises. */
export type TaskRequest =
  | ({ kind: 'inspect_machine' } & InspectOptions)
  | ({ kind: 'prepare_data'; object_store: ObjectStoreLocation } & TokenRequest)
  | {
      /** Serves a model: handles `ServeInput`s until the process is killed. */
      kind: 'serve';
      object_store: ObjectStoreLocation;
      weights: ServedSource | ServedBase;
      threads: number;
      /**
       * Bytes of the GPU that the model may take: now, and if no other model were loaded; null: the model is on the
       * CPU.
       */
      gpu: { free_bytes: number; total_bytes: number } | null;
      /** Interval of the `alive` messages. */
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

/** A checkpoint with the document of its job, or an uploaded model. Both may have an adapter. */
export type ServedSource =
  | {
      spec: ResolvedJobSpec;
      /** Key of the checkpoint's directory. */
      checkpoint: string;
      weights: SampleTask['weights'];
    }
  | {
      model: Model;
      /** Base of an uploaded adapter; null: `model` is a whole model. */
      base_model: Model | null;
    };

/** Id of an uploaded model, or key of a checkpoint's directory. */
export type StoredWeights = { model: string } | { prefix: string };

/** Base weights for adapters that are loaded separately, with the values that their trainings compute with. */
export interface ServedBase {
  base: StoredWeights;
  /** Includes the adapter of one of them. */
  architecture: Architecture;
  precision: ResolvedJobSpec['train']['precision'];
}

/**
 * Messages of an agent to the process of a model. A variant is the model of the process, or an adapter over it, with a
 * tokenizer.
 */
export type ServeInput =
  | {
      kind: 'load_variant';
      /** Number of the variant; never reused. */
      variant: number;
      source: ServedSource;
      /** True if the adapter of the source is loaded over the model. */
      is_adapter: boolean;
      /** Credentials that read the source; null: those of the process. */
      credentials: SessionCredentials | null;
    }
  | { kind: 'unload_variant'; variant: number }
  /** A request to a loaded variant. */
  | { kind: 'sample'; id: number; variant: number; request: SampleTask }
  /** Drops a request. Unknown ids are ignored. */
  | { kind: 'cancel'; id: number };

/**
 * Messages of the process of a model. `alive`: its event loop runs. `allocated`, `loaded`: the model has its memory,
 * then its weights. `variant_unloaded`: the variant has released its memory. `deltas`, `done`, `failed`: progress and
 * end of one request. Bytes are those on the device.
 */
export type ServeMessage =
  | { event: 'alive' }
  | { event: 'allocated'; bytes: number }
  | { event: 'loaded'; bytes: number }
  | { event: 'variant_loaded'; variant: number; bytes: number }
  | { event: 'variant_failed'; variant: number; error: RankError }
  | { event: 'variant_unloaded'; variant: number }
  | { event: 'deltas'; id: number; deltas: PositionedDelta[] }
  | { event: 'done'; id: number; sample: GeneratedText }
  | { event: 'failed'; id: number; error: RankError };

/**
 * Messages of an agent to a task: credentials if the task has a session, the request, then renewed credentials and
 * input.
 */
export type TaskInput = TaskRequest | CredentialsMessage | { kind: 'serve_input'; input: ServeInput };

export interface TaskResults {
  inspect_machine: MachineReport;
  prepare_data: PreparedTokens;
  /** The written folder. */
  export: Omit<JobExport, 'checkpoint_id' | 'step'>;
  /** The written shards, and the digest of the new state. */
  edit: Pick<Manifest, 'shards' | 'state_digest'>;
  /** Has no result: it ends with its process. */
  serve: never;
}

/** Progress of a task. */
export interface TaskProgress {
  done_bytes: number;
  total_bytes: number;
}

/** Messages of a task: any number of progress or serve messages, then the reply. */
export type TaskMessage = { progress: TaskProgress } | ServeMessage | TaskReply;

export type TaskReply =
  | { ok: true; result: TaskResults[keyof TaskResults] }
  | { ok: false; error: RankError };
