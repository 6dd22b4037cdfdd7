/**
 * MANIFEST.json: the document that makes a save a checkpoint. Everything that changes the future of the
 * training is in it; what is not in it does not change the future.
 */
import { ZerofleetError } from '../../contracts/index.js';
import type { StateName } from '../../contracts/rank-protocol.js';
import { Check, type Static, type TSchema, Type } from '../schema.js';
import { isSealed, seal } from './manifest-seal.js';
import { checkShards } from './shard-contents.js';

/** Every state that some optimizer has, in the order in which a shard holds them. All are 32-bit floats. */
export const STATE_NAMES = ['master', 'exp_avg', 'exp_avg_sq', 'momentum_buffer', 'sum'] as const;

export const OPTIMIZER_TYPES = ['adamw', 'adam', 'lamb', 'lion', 'adagrad', 'sgd'] as const;
export type OptimizerType = (typeof OPTIMIZER_TYPES)[number];

/** Every shard has one CRC32C for each of these, the last one may be shorter. */
export const CHUNK_BYTES = 4 * 1024 * 1024;
const CRC_DIGITS = 8;

const Count = Type.Integer({ minimum: 0 });
const Positive = Type.Integer({ minimum: 1 });
const Name = Type.String({ minLength: 1 });
const oneOf = <T extends string>(names: readonly T[]) => Type.Unsafe<T>({ type: 'string', enum: names });
const State = oneOf<StateName>(STATE_NAMES);
const nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);

const strict = { additionalProperties: false } as const;

/** A parameter of the model; the order of the list is the canonical order. */
const Param = Type.Object(
  {
    name: Name,
    shape: Type.Array(Positive),
    numel: Positive,
    group: Name,
    /** It is not trained: `master` is all that there is of it. */
    frozen: Type.Boolean(),
    /** The set of experts that it belongs to; null: every rank shares it. */
    expert_set: nullable(Count),
  },
  strict,
);

/** With the parameters and `world_size` it says what each shard holds: see shard-contents.ts. */
const Sharding = Type.Object(
  { block_elements: Positive, bucket_blocks: Positive, expert_sets: Positive },
  strict,
);

const Shard = Type.Object(
  {
    /** In the manifest's own directory, and never outside of it. */
    file: Type.String({ pattern: '^[A-Za-z0-9_-][A-Za-z0-9._-]*$' }),
    bytes: Positive,
    /** Where its header ends. */
    data_begin: Positive,
    sha256: Type.String({ pattern: '^[0-9a-f]{64}$' }),
    /** Eight digits for each CHUNK_BYTES: one string, as a list of so many takes long to parse. */
    crc32c: Type.String({ pattern: '^[0-9a-f]+$' }),
  },
  strict,
);

export const FORMAT_VERSION = 5;

const LossScaler = Type.Object(
  {
    /** What kind of scaler it is the state of. */
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
    /** Null for a schedule that has none. */
    decay_steps: nullable(Positive),
  },
  strict,
);

const Override = Type.Object(
  {
    step: Count,
    /** Null: the rate of the schedule. */
    lr: Type.Optional(nullable(Type.Number({ minimum: 0 }))),
    /** Null: the scale of the loss scaler. */
    loss_scale: Type.Optional(nullable(Type.Number({ exclusiveMinimum: 0 }))),
  },
  strict,
);

export const Manifest = Type.Object(
  {
    format_version: Type.Literal(FORMAT_VERSION),
    id: Name,
    job_id: Name,
    step: Count,
    /** Steps that changed the parameters, and those that were skipped because a gradient was not finite. */
    optimizer_steps: Count,
    skipped_steps: Count,
    /** Ranks that wrote it; any number may read it. */
    world_size: Positive,
    epoch: Count,
    params: Type.Array(Param, { minItems: 1 }),
    optimizer: oneOf(OPTIMIZER_TYPES),
    /** What the optimizer keeps of each parameter that is not frozen; `master` is the first. */
    states: Type.Array(State, { minItems: 1, uniqueItems: true }),
    sharding: Sharding,
    /** In order of rank. */
    shards: Type.Array(Shard, { minItems: 1 }),
    state_digest: Type.String({ pattern: '^[0-9a-f]{32}$' }),
    seed: Type.Integer(),
    data_seed: Type.Integer(),
    data_digest: Name,
    tokens_digest: Name,
    lr_schedule: LrSchedule,
    /** The entries of `train.overrides` that took part in the steps. */
    overrides: Type.Array(Override),
    loss_scaler: LossScaler,
    total_steps: Positive,
    /** Micro-batches of a step, and the partial sums in which their gradients are added up. */
    leaves: Positive,
    lanes: Positive,
    numerics_fingerprint: Name,
    spec_hash: Name,
    /** Id of the checkpoint before, null for the first. */
    parent: Type.Union([Name, Type.Null()]),
    committed_at: Name,
    program_version: Name,
  },
  strict,
);
export type Manifest = Static<typeof Manifest>;
export type ManifestShard = Manifest['shards'][number];

const manifests = new Check(Manifest, { every: true });

/** What a list of checksums, eight hexadecimal digits each, has for a chunk. */
export function crcOfChunk(crc32c: string, chunk: number): string {
  return crc32c.slice(chunk * CRC_DIGITS, (chunk + 1) * CRC_DIGITS);
}

/** Eight hexadecimal digits. */
export function hexCrc(crc: number): string {
  return crc.toString(16).padStart(CRC_DIGITS, '0');
}

/** The bytes of MANIFEST.json. A changed byte of them is found, wherever it is. */
export function encodeManifest(manifest: Manifest): Buffer {
  return seal(manifest);
}

/**
 * Reads a manifest and checks that its shards are those of all ranks and have the lengths that follow from it.
 * @throws ZerofleetError `manifest_invalid` naming every place that is wrong
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

/** The document without its seal. @throws ZerofleetError `manifest_invalid` when the seal is broken */
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

/** What a schema cannot say: sizes that must fit each other. */
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
