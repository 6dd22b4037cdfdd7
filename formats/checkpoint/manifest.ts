/**
 * MANIFEST.json, the document that commits a save as a checkpoint. It contains everything that affects the
 * rest of the training.
 */
import { ZerofleetError } from '../../contracts/index.js';
import { STATE_NAMES, type StateName } from '../../contracts/state-records.js';
import { OPTIMIZER_TYPES } from '../../job-document/index.js';
import { Check, type Static, type TSchema, Type } from '../../platform/schema.js';
import { isSealed, seal } from './manifest-seal.js';
import { checkShards } from './shard-contents.js';

/** Length of a chunk. A shard has one CRC32C for each chunk; the last chunk may be shorter. */
export const CHUNK_BYTES = 4 * 1024 * 1024;
const CRC_DIGITS = 8;

const Count = Type.Integer({ minimum: 0 });
const Positive = Type.Integer({ minimum: 1 });
const Name = Type.String({ minLength: 1 });
const oneOf = <T extends string>(names: readonly T[]) => Type.Unsafe<T>({ type: 'string', enum: names });
const State = oneOf<StateName>(STATE_NAMES);
const nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);

const strict = { additionalProperties: false } as const;

/** Parameter of the model. The order of the list is the canonical order. */
const Param = Type.Object(
  {
    name: Name,
    shape: Type.Array(Positive),
    numel: Positive,
    group: Name,
    /** True if the parameter is not trained; its only state is `master`. */
    frozen: Type.Boolean(),
    /** True if it belongs to the frozen base under adapters: no shard contains it. */
    base: Type.Boolean(),
    /** Expert set of the parameter; null if all ranks share it. */
    expert_set: nullable(Count),
  },
  strict,
);

/**
 * Together with the parameters and `world_size` it determines the contents of each shard: see
 * shard-contents.ts.
 */
const Sharding = Type.Object(
  { block_elements: Positive, bucket_blocks: Positive, expert_sets: Positive },
  strict,
);

const Shard = Type.Object(
  {
    /** File name in the manifest's own directory. */
    file: Type.String({ pattern: '^[A-Za-z0-9_-][A-Za-z0-9._-]*$' }),
    bytes: Positive,
    /** End of the header in bytes. */
    data_begin: Positive,
    sha256: Type.String({ pattern: '^[0-9a-f]{64}$' }),
    /** Eight digits for each CHUNK_BYTES, in one string because a long list takes long to parse. */
    crc32c: Type.String({ pattern: '^[0-9a-f]+$' }),
  },
  strict,
);

export const FORMAT_VERSION = 10;

/** Frozen base under adapters: its digest, in the precision of the training, and where it is. */
const Base = Type.Object(
  {
    digest: Type.String({ pattern: '^[0-9a-f]{32}$' }),
    source: Type.Union([
      Type.Object({ seed: Type.Integer() }, strict),
      Type.Object({ model: Name }, strict),
      Type.Object({ checkpoint: Name, job: Name, prefix: Name }, strict),
    ]),
  },
  strict,
);

export const LossScaler = Type.Object(
  {
    /** Kind of the loss scaler. */
    type: oneOf(['none', 'static', 'dynamic'] as const),
    scale: Type.Number({ exclusiveMinimum: 0 }),
    iteration: Count,
    last_overflow_iteration: Type.Integer({ minimum: -1 }),
    hysteresis: Count,
    skipped_in_a_row: Count,
  },
  strict,
);

const LrSchedule = Type.Object(
  {
    type: Name,
    warmup_steps: Count,
    warmup_type: Name,
    warmup_start_lr: Type.Number({ minimum: 0 }),
    min_lr: Type.Number({ minimum: 0 }),
    /** Null for a schedule without it. */
    decay_steps: nullable(Positive),
  },
  strict,
);

/** REFERENCE_FILE of the checkpoint's directory. */
const Reference = Type.Object(
  { bytes: Positive, sha256: Type.String({ pattern: '^[0-9a-f]{64}$' }), objective: Name },
  strict,
);

/** State of `train.early_stopping` after the step. */
const EarlyStopping = Type.Object(
  {
    /** Metric and step of the newest evaluation that improved; null before the first. */
    best_eval_loss: nullable(Type.Number()),
    best_step: nullable(Positive),
    evaluations_without_improvement: Count,
  },
  strict,
);

/** Position of a session in its log of calls. */
const CallPosition = Type.Object({ number: Count, tokens: Count }, strict);

const Override = Type.Object(
  {
    step: Count,
    /** Null selects the rate of the schedule. */
    lr: Type.Optional(nullable(Type.Number({ minimum: 0 }))),
    /** Null selects the scale of the loss scaler. */
    loss_scale: Type.Optional(nullable(Type.Number({ exclusiveMinimum: 0 }))),
    /** Rates of groups of parameters, by their patterns; null selects the group's share of the rate. */
    group_lr: Type.Optional(Type.Record(Name, nullable(Type.Number({ minimum: 0 })))),
  },
  strict,
);

/** Checkpoint that this one was made from, by changing one state of one parameter. */
const MadeFrom = Type.Object(
  { checkpoint_id: Name, edit_id: Name, tensor: Name, tensor_state: State },
  strict,
);

export const Manifest = Type.Object(
  {
    format_version: Type.Literal(FORMAT_VERSION),
    id: Name,
    job_id: Name,
    step: Count,
    /** Steps that changed the parameters, and steps skipped for a gradient that was not finite. */
    optimizer_steps: Count,
    skipped_steps: Count,
    /** Ranks that wrote it; any number may read it. */
    world_size: Positive,
    epoch: Count,
    params: Type.Array(Param, { minItems: 1 }),
    optimizer: oneOf(OPTIMIZER_TYPES),
    /** Optimizer states of each trained parameter; `master` is the first. */
    states: Type.Array(State, { minItems: 1, uniqueItems: true }),
    sharding: Sharding,
    /** By rank. */
    shards: Type.Array(Shard, { minItems: 1 }),
    state_digest: Type.String({ pattern: '^[0-9a-f]{32}$' }),
    /** Null without adapters. */
    base: nullable(Base),
    /** Finite losses of the evaluations after this step, by name. */
    eval_losses: Type.Record(Name, Type.Number()),
    /** Null without early stopping. */
    early_stopping: nullable(EarlyStopping),
    /** Log-probabilities under the initial model; null where the objective does not use them. */
    reference: nullable(Reference),
    /** Null for a job that is no session. */
    calls: nullable(CallPosition),
    seed: Type.Integer(),
    data_seed: Type.Integer(),
    data_digest: Name,
    tokens_digest: Name,
    lr_schedule: LrSchedule,
    /** Entries of `train.overrides` that took part in the steps. */
    overrides: Type.Array(Override),
    loss_scaler: LossScaler,
    /** Null for a session. */
    total_steps: nullable(Positive),
    /** Micro-batches of a step, and the partial sums that accumulate their gradients. */
    leaves: Positive,
    lanes: Positive,
    numerics_fingerprint: Name,
    spec_hash: Name,
    /** Id of the previous checkpoint, null for the first. */
    parent: Type.Union([Name, Type.Null()]),
    /** Null for a checkpoint that ranks saved. */
    made_from: nullable(MadeFrom),
    committed_at: Name,
    program_version: Name,
  },
  strict,
);
export type Manifest = Static<typeof Manifest>;
export type ManifestShard = Manifest['shards'][number];

const manifests = new Check(Manifest, { every: true });

/** Returns the checksum of a chunk from a list with eight hexadecimal digits each. */
export function crcOfChunk(crc32c: string, chunk: number): string {
  return crc32c.slice(chunk * CRC_DIGITS, (chunk + 1) * CRC_DIGITS);
}

/** Formats a CRC as eight hexadecimal digits. */
export function hexCrc(crc: number): string {
  return crc.toString(16).padStart(CRC_DIGITS, '0');
}

/** Encodes MANIFEST.json. The seal detects any changed byte. */
export function encodeManifest(manifest: Manifest): Buffer {
  return seal(manifest);
}

/**
 * Reads a manifest and checks that it has the shards of all ranks, each with the length that follows from the
 * manifest.
 * @throws ZerofleetError `manifest_invalid` naming every problem
 */
export function parseManifest(bytes: Uint8Array): Manifest {
  let value: unknown;
  try {
    value = JSON.parse(Buffer.from(bytes).toString('utf8'));
  } catch (error) {
    throw new ZerofleetError('manifest_invalid', `the manifest is not JSON: ${(error as Error).message}`);
  }
  value = unsealed(value, bytes);
  if (!manifests.fits(value))
    throw new ZerofleetError(
      'manifest_invalid',
      `the manifest is malformed: ${manifests.problems().join('; ')}`,
    );
  if (value.states[0] !== 'master') {
    throw new ZerofleetError(
      'manifest_invalid',
      `the manifest's first state is ${value.states[0]}, not master`,
    );
  }
  checkSizes(value);
  return value;
}

/**
 * Returns the document without its seal. @throws ZerofleetError `manifest_invalid` when the seal is broken
 */
function unsealed(value: unknown, bytes: Uint8Array): unknown {
  if (!isObject(value) || value.format_version !== FORMAT_VERSION) return value;
  if (!isSealed(bytes))
    throw new ZerofleetError(
      'manifest_invalid',
      'the manifest is not the one that was written: its SHA-256 differs',
    );
  const { sha256: _, ...content } = value;
  return content;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Checks sizes that must match each other, which a schema cannot express. */
function checkSizes(manifest: Manifest): void {
  for (const { file, bytes, crc32c } of manifest.shards) {
    const checksums = crc32c.length / CRC_DIGITS;
    if (checksums !== Math.ceil(bytes / CHUNK_BYTES))
      throw new ZerofleetError('manifest_invalid', `${file}: ${checksums} checksums for ${bytes} bytes`);
  }
  try {
    checkShards(manifest, manifest.shards);
  } catch (error) {
    throw new ZerofleetError('manifest_invalid', (error as Error).message, { cause: error });
  }
}
