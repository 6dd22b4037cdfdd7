import { type Static, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { ZerofleetError } from '../../../contracts/index.js';

const Count = Type.Integer({ minimum: 0 });
const Crc32c = Type.String({ pattern: '^[0-9a-f]{8}$' });

export const Manifest = Type.Object({
  format_version: Type.Literal(1),
  id: Type.String(),
  job_id: Type.String(),
  step: Count,
  optimizer_steps: Count,
  skipped_steps: Count,
  world_size: Type.Integer({ minimum: 1 }),
  epoch: Count,
  params: Type.Array(
    Type.Object({
      name: Type.String(),
      shape: Type.Array(Type.Integer({ minimum: 1 })),
      numel: Type.Integer({ minimum: 1 }),
      group: Type.Union([Type.Literal('decay'), Type.Literal('no_decay')]),
    }),
  ),
  states: Type.Array(Type.String()),
  shards: Type.Array(
    Type.Object({
      file: Type.String({ pattern: '^[A-Za-z0-9._-]+$' }),
      bytes: Count,
      sha256: Type.String({ pattern: '^[0-9a-f]{64}$' }),
      crc32c: Type.Array(Crc32c),
      tensors: Type.Array(
        Type.Object({
          state: Type.Union([Type.Literal('master'), Type.Literal('exp_avg'), Type.Literal('exp_avg_sq')]),
          param: Type.String(),
          element_begin: Count,
          element_end: Count,
          byte_begin: Count,
          byte_end: Count,
        }),
      ),
    }),
  ),
  state_digest: Type.String({ pattern: '^[0-9a-f]{32}$' }),
  seed: Type.Integer(),
  data_seed: Type.Integer(),
  data_digest: Type.String(),
  lr_schedule: Type.Object({ type: Type.String(), warmup_steps: Type.Number(), min_lr: Type.Number() }),
  total_steps: Count,
  lanes: Type.Integer({ minimum: 1 }),
  numerics_fingerprint: Type.String(),
  spec_hash: Type.String(),
  parent: Type.Union([Type.String(), Type.Null()]),
  committed_at: Type.String(),
  program_version: Type.String(),
});
export type Manifest = Static<typeof Manifest>;

/** @throws ZerofleetError `manifest_invalid` */
export function parseManifest(bytes: Uint8Array): Manifest {
  let value: unknown;
  try {
    value = JSON.parse(Buffer.from(bytes).toString('utf8'));
  } catch (error) {
    throw new ZerofleetError('manifest_invalid', `the manifest is not JSON: ${(error as Error).message}`);
  }
  const problem = Value.Errors(Manifest, value).First();
  if (problem) throw new ZerofleetError('manifest_invalid', `${problem.path}: ${problem.message}`);
  return value as Manifest;
}
