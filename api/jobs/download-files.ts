import { createHash } from 'node:crypto';
import { type DownloadRequest, type ExportFile, type Job, ZerofleetError } from '../../contracts/index.js';
import { type ExportRecord, readExportRecord } from '../../platform/checkpoint/export-record.js';
import {
  checkpointExportPrefix,
  type ExportId,
  exportName,
  exportsPrefix,
  MANIFEST_FILE,
} from '../../platform/checkpoint/layout.js';
import { parseManifest } from '../../platform/checkpoint/manifest.js';
import type { ObjectStore } from '../../platform/object-store/common/port.js';
import { type CheckpointHolds, DOWNLOAD_HOLDER, type JobRequests } from '../../state/index.js';
import { checkpointNotFound, notFound } from '../access/found.js';
import { resolveExport } from './resolve-export.js';

interface Stores {
  store: Pick<JobRequests & CheckpointHolds, 'findCheckpoint' | 'getJob' | 'holdCheckpoint'>;
  objects: ObjectStore;
}

/** Files of one folder of the object store. */
export interface FileSet {
  /** Kind of an export; null for the checkpoint itself. */
  kind: Pick<ExportId, 'format' | 'dtype'> | null;
  state_digest: string;
  /** Key of the folder, without a slash at its end. */
  prefix: string;
  files: readonly ExportFile[];
}

/**
 * Files of a checkpoint, or with `format` the files of one of its exports, which may outlive it. Retention keeps the checkpoint
 * for `hold_ms`.
 * @throws ZerofleetError `checkpoint_not_found`, `export_not_found`, `validation_failed`; errors of the object store
 */
export async function findFiles(
  stores: Stores,
  checkpointId: string,
  { format, dtype, hold_ms }: Pick<DownloadRequest, 'format' | 'dtype'> & { hold_ms: number },
): Promise<FileSet> {
  const found = await stores.store.findCheckpoint(checkpointId);
  const job = found && (await stores.store.getJob(found.job_id));
  if (!found || !job) throw notFound('checkpoint', checkpointId);
  if (format !== undefined) {
    const kind = resolveExport({ format, ...(dtype && { dtype }) }, job.spec);
    return findExport(stores.objects, job, found.checkpoint?.step, { checkpoint: checkpointId, ...kind });
  }
  if (dtype !== undefined) throw withoutFormat();
  // Hold first: listed files must not be removed during the download.
  if (!found.checkpoint || !(await stores.store.holdCheckpoint(checkpointId, DOWNLOAD_HOLDER, hold_ms)))
    throw checkpointNotFound(`checkpoint ${checkpointId} was removed`);
  return checkpointFiles(stores.objects, found.checkpoint.prefix);
}

async function checkpointFiles(objects: ObjectStore, prefix: string): Promise<FileSet> {
  const bytes = await objects.get(`${prefix}/${MANIFEST_FILE}`).catch((error: { code?: unknown }) => {
    // Retention removes the manifest first.
    throw error.code === 'object_not_found' ? checkpointNotFound('the checkpoint is being removed') : error;
  });
  const manifest = parseManifest(bytes);
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  const files = [
    { name: MANIFEST_FILE, bytes: bytes.length, sha256 },
    ...manifest.shards.map((shard) => ({ name: shard.file, bytes: shard.bytes, sha256: shard.sha256 })),
  ];
  return { kind: null, state_digest: manifest.state_digest, prefix, files };
}

async function findExport(
  objects: ObjectStore,
  job: Job,
  step: number | undefined,
  id: ExportId,
): Promise<FileSet> {
  const kind = { format: id.format, dtype: id.dtype };
  const record = await recordOf(objects, job.id, step, id);
  if (record) return { kind, ...record };
  // The final export of a job is in the job's own record.
  const { format, dtype } = job.spec.export;
  const isFinal = job.export?.checkpoint_id === id.checkpoint && format === id.format && dtype === id.dtype;
  if (isFinal && job.export) return { kind, ...job.export };
  throw new ZerofleetError(
    'export_not_found',
    `${id.checkpoint} has no ${id.format} export of ${id.dtype}; POST /v1/checkpoints/${id.checkpoint}/export writes one`,
  );
}

/** Record of an export. A removed checkpoint has no known step, so its folder is searched. */
async function recordOf(
  objects: ObjectStore,
  jobId: string,
  step: number | undefined,
  id: ExportId,
): Promise<ExportRecord | null> {
  if (step !== undefined) return readExportRecord(objects, checkpointExportPrefix(jobId, step, id));
  for await (const { key } of objects.list(exportsPrefix(jobId))) {
    const [, prefix] = /^(.*)\/EXPORT\.json$/.exec(key) ?? [];
    if (prefix?.endsWith(`-${exportName(id)}`)) return readExportRecord(objects, prefix);
  }
  return null;
}

function withoutFormat(): ZerofleetError {
  const message = 'a checkpoint has no dtype option; give the format of an export';
  return new ZerofleetError('validation_failed', message, {
    fields: [{ pointer: '/dtype', code: 'field_without_effect', message, suggestion: 'format' }],
  });
}
