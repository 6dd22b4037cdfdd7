import { VALUES } from '../../../contracts/generated/job-defaults.js';
import type { Checkpoint, CheckpointExport, ExportKind, ExportPayload } from '../../../contracts/index.js';
import { type ExportRecord, readExportRecord } from '../../../formats/checkpoint/export-record.js';
import { checkpointExportPrefix, exportName, exportsPrefix } from '../../../formats/checkpoint/layout.js';
import type { JobStore } from '../../../state/index.js';
import { checkpointNotFound, found } from '../../access/found.js';
import { findCheckpoint } from '../../jobs/init-source.js';
import { resolveExport } from '../../jobs/resolve-export.js';
import type { ExportPort, ExportProgress } from '../../services.js';
import type { OperationHandler } from '../types.js';

export const exportCheckpoint: OperationHandler<'exportCheckpoint'> = async (request, reply) => {
  const { objects, exports } = request.server.services;
  const { records: store } = request;
  const { source, errors } = await findCheckpoint({ store, objects }, request.params.checkpoint_id);
  if (source === null) throw checkpointNotFound(errors[0]?.message);
  const { checkpoint, spec } = source;
  const kind = resolveExport(request.body, spec);
  const { id } = checkpoint;
  const payload = payloadOf(checkpoint, kind);
  const record = await readExportRecord(objects, payload.prefix);
  if (record) return reply.code(202).send(written(record));
  // Retention keeps the checkpoint until the export is written or has failed.
  const held = await store.holdCheckpoint(id, exportName({ checkpoint: id, ...kind }));
  if (!held) throw checkpointNotFound(`checkpoint ${id} was removed`);
  const progress = underWay(payload, await exports.request(spec.resources.pool, payload));
  return reply.code(202).send(progress);
};

export const listCheckpointExports: OperationHandler<'listCheckpointExports'> = async (request) => {
  const { objects, exports } = request.server.services;
  const { records: store } = request;
  const { checkpoint_id } = request.params;
  const { checkpoint, job_id } = found(
    await store.findCheckpoint(checkpoint_id),
    'checkpoint',
    checkpoint_id,
  );
  const data: CheckpointExport[] = [];
  // A finished export is found by its record, even if the checkpoint was removed; an unfinished one by its queue entry.
  for await (const { key } of objects.list(exportsPrefix(job_id))) {
    const [, prefix] = /^(.*)\/EXPORT\.json$/.exec(key) ?? [];
    const record = prefix?.includes(`-${checkpoint_id}-`) ? await readExportRecord(objects, prefix) : null;
    if (record?.checkpoint_id === checkpoint_id) data.push(written(record));
  }
  const waiting = checkpoint === null ? [] : await unwritten({ store, exports }, checkpoint, data);
  return { data: [...data, ...waiting] };
};

const KINDS: readonly ExportKind[] = [false, true].flatMap((tensorboard) => [
  { format: 'deepspeed_universal', dtype: 'fp32', weights: 'trained', tensorboard },
  ...VALUES.ExportFormat.filter((format) => format !== 'deepspeed_universal').flatMap((format) =>
    VALUES.ExportDtype.flatMap((dtype) =>
      VALUES.ExportWeights.map((weights) => ({ format, dtype, weights, tensorboard })),
    ),
  ),
]);

async function unwritten(
  { store, exports }: { store: Pick<JobStore, 'getJob'>; exports: ExportPort },
  checkpoint: Pick<Checkpoint, 'id' | 'job_id' | 'prefix' | 'step'>,
  known: readonly CheckpointExport[],
): Promise<CheckpointExport[]> {
  const job = await store.getJob(checkpoint.job_id);
  if (job === null) return [];
  const waiting: CheckpointExport[] = [];
  for (const kind of KINDS) {
    const payload = payloadOf(checkpoint, kind);
    if (known.some(({ prefix }) => prefix === payload.prefix)) continue;
    const progress = await exports.progress(job.spec.resources.pool, payload);
    if (progress !== null) waiting.push(underWay(payload, progress));
  }
  return waiting;
}

function payloadOf(
  { id, job_id, prefix, step }: Pick<Checkpoint, 'id' | 'job_id' | 'prefix' | 'step'>,
  kind: ExportKind,
): ExportPayload {
  const folder = checkpointExportPrefix(job_id, step, { checkpoint: id, ...kind });
  return { job_id, checkpoint: { id, prefix, step }, ...kind, prefix: folder };
}

function written({ format_version: _, ...record }: ExportRecord): CheckpointExport {
  return { ...record, state: 'succeeded', error: null };
}

function underWay(payload: ExportPayload, progress: ExportProgress): CheckpointExport {
  const { job_id, checkpoint, format, dtype, weights, tensorboard, prefix } = payload;
  const { state } = progress;
  const error = progress.state === 'failed' ? progress.error : null;
  return {
    checkpoint_id: checkpoint.id,
    job_id,
    format,
    dtype,
    weights,
    tensorboard,
    state,
    prefix,
    state_digest: null,
    files: [],
    error,
  };
}
