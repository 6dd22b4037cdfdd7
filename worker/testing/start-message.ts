import {
  type JobSpec,
  type ModelConfig,
  type ResolvedJobSpec,
  type TrainableJobSpec,
  traceHeaders,
} from '../../contracts/index.js';
import type { StartMessage } from '../../contracts/rank-protocol.js';
import { isTrainable, resolveSpec } from '../../job-document/index.js';
import { continueTrace } from '../../platform/tracing.js';

/** Not 127.0.0.1, where clients of other tests look for their servers: see RANKS_ADDRESS of native/js/testing.ts. */
const RANKS_ADDRESS = '127.0.0.2';
/** Longer than connecting takes on a busy machine. */
const COMM_TIMEOUT_MS = 60_000;

const TINY_MODEL: ModelConfig = {
  model_type: 'llama',
  hidden_size: 32,
  intermediate_size: 64,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  vocab_size: 256,
  tie_word_embeddings: true,
};

export interface TestSpec {
  steps?: number;
  every_steps?: number;
  keep?: NonNullable<JobSpec['checkpoint']>['keep'];
  /** Replaces the two fields above. */
  checkpoint?: JobSpec['checkpoint'];
  ranks?: number;
  priority?: number;
  max_errors?: number;
  preemptions?: number | null;
  limits?: Partial<ResolvedJobSpec['limits']>;
  dataset?: string;
  /** Fields of `train`, besides those of a tiny job. */
  train?: JobSpec['train'];
  /** `data` section of the spec; split bytes by default. */
  data?: Partial<ResolvedJobSpec['data']>;
  /** Initial checkpoint or model of the job. */
  init_from?: ResolvedJobSpec['model']['init_from'];
  /** Model other than the tiny Llama. */
  config?: ModelConfig;
  overrides?: ResolvedJobSpec['train']['overrides'];
  export_dtype?: ResolvedJobSpec['export']['dtype'];
  /** `export` section of the spec. */
  export?: JobSpec['export'];
}

/** Either of steps and epochs; a session has neither. */
function stepsOf({ steps = 20, train }: TestSpec): JobSpec['train'] {
  return (train?.epochs ?? train?.session) === undefined ? { steps } : {};
}

/** Returns the spec of `submittedSpec` for a job with steps. */
export function testSpec(given: TestSpec = {}): TrainableJobSpec {
  return counted(submittedSpec(given));
}

/** Returns the resolved spec of a tiny job with four leaves, with the given fields. */
export function submittedSpec(given: TestSpec = {}): ResolvedJobSpec {
  const { spec, errors } = resolveSpec(
    {
      priority: given.priority ?? 0,
      model: { config: given.config ?? TINY_MODEL },
      data: {
        ...((given.data?.mixture ?? given.train?.session) === undefined && {
          dataset: given.dataset ?? 'ds_01J00000000000000000000000',
        }),
        ...given.data,
      },
      train: { ...stepsOf(given), sequence_length: 16, ...given.train },
      resources: { ranks: { min: 1, preferred: given.ranks ?? 1, max: 4 } },
      checkpoint: given.checkpoint ?? {
        every_steps: given.every_steps ?? 5,
        keep: given.keep ?? {},
      },
      limits: given.limits ?? {},
      export: given.export ?? {},
      retry: { max_errors: given.max_errors ?? 3, preemptions: given.preemptions ?? null },
    },
    null,
  );
  if (errors.length > 0) throw new Error(JSON.stringify(errors));
  spec.model.init_from = given.init_from ?? null;
  Object.assign(spec.data, given.data);
  spec.train.overrides = given.overrides ?? [];
  spec.export.dtype = given.export_dtype ?? 'bf16';
  return spec;
}

/** Returns the spec of a job with steps. */
function counted(spec: ResolvedJobSpec): TrainableJobSpec {
  if (isTrainable(spec)) return spec;
  throw new Error('the number of steps is unknown');
}

/** Fields of a start message, with the spec of a job with steps. */
export type StartFields = Partial<Omit<StartMessage, 'spec'> & { spec: ResolvedJobSpec }>;

export function startMessage({ spec = testSpec(), ...fields }: StartFields = {}): StartMessage {
  const retry = { attempts: 3, first_delay_ms: 10, max_delay_ms: 50 };
  return {
    kind: 'start',
    trace: traceHeaders(continueTrace(null)),
    job_id: 'job_01J00000000000000000000000',
    execution: '1-a',
    nonce: '00000000',
    rank: 0,
    world_size: 1,
    device: 'cpu',
    threads: 1,
    local_ranks: 1,
    spec: counted(spec),
    training_files: [{ path: '', weight: 1, useful_share: 1 }],
    evaluation_files: [],
    tokens_digest: `sha256:${'0'.repeat(64)}`,
    object_store: { url: '', s3_endpoint: null },
    load: null,
    base: null,
    comm: { bind_address: RANKS_ADDRESS, timeout_ms: COMM_TIMEOUT_MS },
    heartbeat_ms: 50,
    agent_silence_ms: 30_000,
    failures_per_second: 1 / 86_400,
    save: { periodic: retry, final: retry },
    ...fields,
  };
}
