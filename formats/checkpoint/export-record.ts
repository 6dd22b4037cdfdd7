/** EXPORT.json, the document that commits a folder as an export; written once, last. */

import { VALUES } from '../../contracts/generated/job-defaults.js';
import { ZerofleetError } from '../../contracts/index.js';
import { getIfExists } from '../../platform/object-store/common/get-if-exists.js';
import type { ObjectStore } from '../../platform/object-store/common/port.js';
import { Check, type Static, Type } from '../../platform/schema.js';

export const EXPORT_RECORD_FILE = 'EXPORT.json';
const strict = { additionalProperties: false };
const oneOf = <T extends string>(values: readonly T[]) => Type.Unsafe<T>({ enum: values });

const ExportRecord = Type.Object(
  {
    format_version: Type.Literal(1),
    checkpoint_id: Type.String(),
    job_id: Type.String(),
    format: oneOf(VALUES.ExportFormat),
    dtype: oneOf(VALUES.ExportDtype),
    weights: oneOf(VALUES.ExportWeights),
    tensorboard: Type.Boolean(),
    prefix: Type.String(),
    state_digest: Type.String(),
    base_quantization: Type.Optional(Type.Union([Type.Literal('nf4'), Type.Literal('int8')])),
    files: Type.Array(
      Type.Object(
        { name: Type.String(), bytes: Type.Integer({ minimum: 0 }), sha256: Type.String() },
        strict,
      ),
    ),
  },
  strict,
);
export type ExportRecord = Static<typeof ExportRecord>;
const records = new Check(ExportRecord);

export function exportRecordKey(prefix: string): string {
  return `${prefix}/${EXPORT_RECORD_FILE}`;
}

/**
 * Puts the record unless one exists. All writers of a checkpoint's export write the same record.
 * @throws errors of the object store
 */
export async function putExportRecord(objects: ObjectStore, record: ExportRecord): Promise<void> {
  const bytes = Buffer.from(`${JSON.stringify(record, null, 2)}\n`);
  await objects
    .put(exportRecordKey(record.prefix), bytes, { createOnly: true, contentType: 'application/json' })
    .catch((error: { code?: unknown }) => {
      if (error.code !== 'precondition_failed') throw error;
    });
}

/**
 * Returns null if nothing was exported.
 * @throws ZerofleetError `export_failed` for a malformed record; errors of the object store
 */
export async function readExportRecord(objects: ObjectStore, prefix: string): Promise<ExportRecord | null> {
  const key = exportRecordKey(prefix);
  const bytes = await getIfExists(objects, key);
  if (bytes === null) return null;
  const value: unknown = JSON.parse(bytes.toString('utf8'));
  if (records.fits(value)) return value;
  throw new ZerofleetError('export_failed', `${key} is malformed; remove it to export again`);
}
