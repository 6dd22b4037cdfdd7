import type {
  ExportPayload,
  GeneratedText,
  JobExport,
  ResolvedJobSpec,
  SampleTask,
} from '../../contracts/index.js';
import type {
  CredentialsMessage,
  ObjectStoreLocation,
  RankError,
  RetryPolicy,
} from '../../contracts/rank-protocol.js';
import type { PreparedTokens, TokenRequest } from '../data/prepare-tokens.js';
import type { InspectOptions, MachineReport } from '../gpus/inspect-machine.js';

/** Computation and bulk I/O that runs in a child process, so that the agent's event loop only supervises. */
export type TaskRequest =
  | ({ kind: 'inspect_machine' } & InspectOptions)
  | ({ kind: 'prepare_data'; object_store: ObjectStoreLocation } & TokenRequest)
  | {
      kind: 'sample';
      object_store: ObjectStoreLocation;
      spec: ResolvedJobSpec;
      /** Key of the checkpoint's directory. */
      checkpoint: string;
      request: SampleTask;
      threads: number;
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
    };

/** Messages of an agent to a task: credentials if it has a session, the request, then renewed credentials. */
export type TaskInput = TaskRequest | CredentialsMessage;

export interface TaskResults {
  inspect_machine: MachineReport;
  prepare_data: PreparedTokens;
  /** The written folder. */
  export: Omit<JobExport, 'checkpoint_id' | 'step'>;
  sample: GeneratedText;
}

/** Progress of a task. */
export interface TaskProgress {
  done_bytes: number;
  total_bytes: number;
}

/** Messages of a task: progress, any number of times, then the reply. */
export type TaskMessage = { progress: TaskProgress } | TaskReply;

export type TaskReply =
  | { ok: true; result: TaskResults[keyof TaskResults] }
  | { ok: false; error: RankError };
