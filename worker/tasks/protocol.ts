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
import type { LookOptions, MachineReport } from '../gpus/look-at-machine.js';

/** Work that computes or moves much, done in a child process so that the agent's event loop only supervises. */
export type TaskRequest =
  | ({ kind: 'look_at_machine' } & LookOptions)
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
      /** Key of the folder to write. */
      prefix: string;
      retry: RetryPolicy;
    };

/** What an agent says to a task: credentials if it has any for it, the request, and then credentials whenever they are renewed. */
export type TaskOrder = TaskRequest | CredentialsMessage;

export interface TaskResults {
  look_at_machine: MachineReport;
  prepare_data: PreparedTokens;
  export: JobExport;
  sample: GeneratedText;
}

/** How far a task has come. */
export interface TaskProgress {
  done_bytes: number;
  total_bytes: number;
}

/** What a task says: how far it is, any number of times, and then how it ended. */
export type TaskMessage = { progress: TaskProgress } | TaskReply;

export type TaskReply =
  | { ok: true; result: TaskResults[keyof TaskResults] }
  | { ok: false; error: RankError };
