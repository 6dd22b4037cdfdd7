import { type CheckpointExport, type ExportPayload, ZerofleetError } from '../../../contracts/index.js';
import { type ExportRecord, readExportRecord } from '../../../platform/checkpoint/export-record.js';
import { checkpointExportPrefix, exportName, exportsPrefix } from '../../../platform/checkpoint/layout.js';
import type { JobStorePort } from '../../../state/index.js';
import { findCheckpoint } from '../../jobs/init-source.js';
import { resolveExport } from '../../jobs/resolve-export.js';
import type { ExportPort, ExportProgress } from '../../services.js';
import type { OperationHandler } from '../types.js';

export const exportCheckpoint: OperationHandler<'exportCheckpoint'> = async (request, reply) => {
  const { objects, exports } = request.server.services;
  const { records: store } = request;
  const { source, errors } = await findCheckpoint({ store, objects }, request.params.checkpoint_id);
  if (source === null) throw notFound(errors[0]?.message);
  const { checkpoint, spec } = source;
  const { format, dtype } = resolveExport(request.body, spec);
  const { id, job_id, prefix, step } = checkpoint;
  const payload: ExportPayload = {
    job_id,
    checkpoint: { id, prefix },
    format,
    dtype,
    prefix: checkpointExportPrefix(job_id, step, { checkpoint: id, format, dtype }),
  };
  const record = await readExportRecord(objects, payload.prefix);
  if (record) return reply.code(202).send(written(record));
  // Retention keeps the checkpoint until the export is written or has failed.
  const held = await store.holdCheckpoint(id, exportName({ checkpoint: id, format, dtype }));
  if (!held) throw notFound(`checkpoint ${id} was removed`);
  const told = underWay(payload, await exports.request(spec.resources.pool, payload));
  return reply.code(202).send(told);
};

export const listCheckpointExports: OperationHandler<'listCheckpointExports'> = async (request) => {
  const { objects, exports } = request.server.services;
  const { records: store } = request;
  const { checkpoint_id } = request.params;
  const found = await store.findCheckpoint(checkpoint_id);
  if (found === null) throw notFound(`there is no checkpoint ${checkpoint_id}`);
  const data: CheckpointExport[] = [];
  // A finished export is found by its record, even if the checkpoint was removed; an unfinished one by its queue entry.
  for await (const { key } of objects.list(exportsPrefix(found.job_id))) {
    const [, prefix] = /^(.*)\/EXPORT\.json$/.exec(key) ?? [];
    const record = prefix?.includes(`-${checkpoint_id}-`) ? await readExportRecord(objects, prefix) : null;
    if (record?.checkpoint_id === checkpoint_id) data.push(written(record));
  }
  const waiting =
    found.checkpoint === null ? [] : await unwritten({ store, exports }, found.checkpoint, data);
  return { data: [...data, ...waiting] };
};

const KINDS = [
  { format: 'deepspeed_universal', dtype: 'fp32' },
  { format: 'safetensors', dtype: 'bf16' },
  { format: 'safetensors', dtype: 'fp16' },
  { format: 'safetensors', dtype: 'fp32' },
] as const;

async function unwritten(
  { store, exports }: { store: Pick<JobStorePort, 'getJob'>; exports: ExportPort },
  { id, job_id, prefix, step }: { id: string; job_id: string; prefix: string; step: number },
  known: readonly CheckpointExport[],
): Promise<CheckpointExport[]> {
  const job = await store.getJob(job_id);
  if (job === null) return [];
  const waiting: CheckpointExport[] = [];
  for (const { format, dtype } of KINDS) {
    if (known.some((other) => other.format === format && other.dtype === dtype)) continue;
    const payload: ExportPayload = {
      job_id,
      checkpoint: { id, prefix },
      format,
      dtype,
      prefix: checkpointExportPrefix(job_id, step, { checkpoint: id, format, dtype }),
    };
    const progress = await exports.progress(job.spec.resources.pool, payload);
    if (progress !== null) waiting.push(underWay(payload, progress));
  }
  return waiting;
}

function written({ format_version: _, ...record }: ExportRecord): CheckpointExport {
  return { ...record, state: 'succeeded', error: null };
}

function underWay(payload: ExportPayload, progress: ExportProgress): CheckpointExport {
  const { job_id, checkpoint, format, dtype, prefix } = payload;
  const { state } = progress;
  const error = progress.state === 'failed' ? progress.error : null;
  return {
    checkpoint_id: checkpoint.id,
    job_id,
    format,
    dtype,
    state,
    prefix,
    state_digest: null,
    files: [],
    error,
  };
}

function notFound(message = 'there is no such checkpoint'): ZerofleetError {
  return new ZerofleetError('checkpoint_not_found', message);
}
