import { createHash } from 'node:crypto';
import {
  type ExportFile,
  type ExportKind,
  type ExportRequest,
  type Job,
  ZerofleetError,
} from '../../contracts/index.js';
import { type ExportRecord, readExportRecord } from '../../formats/checkpoint/export-record.js';
import {
  checkpointExportPrefix,
  type ExportId,
  exportName,
  exportsPrefix,
  MANIFEST_FILE,
} from '../../formats/checkpoint/layout.js';
import { parseManifest } from '../../formats/checkpoint/manifest.js';
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
  kind: ExportKind | null;
  state_digest: string;
  /** Key of the folder, without a slash at its end. */
  prefix: string;
  files: readonly ExportFile[];
}

/**
 * Files of a checkpoint, or with `format` the files of one of its exports, which may outlive it. Retention keeps the
 * checkpoint for `hold_ms`.
 * @throws ZerofleetError `checkpoint_not_found`, `export_not_found`, `validation_failed`; errors of the object store
 */
export async function findFiles(
  stores: Stores,
  checkpointId: string,
  { hold_ms, ...request }: ExportRequest & { hold_ms: number },
): Promise<FileSet> {
  const found = await stores.store.findCheckpoint(checkpointId);
  const job = found && (await stores.store.getJob(found.job_id));
  if (!found || !job) throw notFound('checkpoint', checkpointId);
  if (request.format !== undefined) {
    const kind = resolveExport(request, job.spec);
    return findExport(stores.objects, job, found.checkpoint?.step, { checkpoint: checkpointId, ...kind });
  }
  requireNoKind(request);
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
  { checkpoint, ...kind }: ExportKind & ExportId,
): Promise<FileSet> {
  const id = { checkpoint, ...kind };
  const record = await recordOf(objects, job.id, step, id);
  if (record) return { kind, ...record };
  // The final export of a job is in the job's own record.
  const isFinal =
    job.export?.checkpoint_id === checkpoint &&
    exportName({ ...job.spec.export, checkpoint }) === exportName(id);
  if (isFinal && job.export) return { kind, ...job.export };
  throw new ZerofleetError(
    'export_not_found',
    `${checkpoint} has no ${kind.format} export of ${kind.dtype}, weights ${kind.weights}${kind.tensorboard ? ', with an event file' : ''}; POST /v1/checkpoints/${checkpoint}/export writes one`,
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

/** @throws ZerofleetError `validation_failed` for an option of exports */
function requireNoKind({ dtype, weights, tensorboard }: ExportRequest): void {
  const [field] = Object.entries({ dtype, weights, tensorboard }).flatMap(([name, value]) =>
    value === undefined ? [] : [name],
  );
  if (field === undefined) return;
  const message = `a checkpoint has no ${field} option; give the format of an export`;
  throw new ZerofleetError('validation_failed', message, {
    fields: [{ pointer: `/${field}`, code: 'field_without_effect', message, suggestion: 'format' }],
  });
}
