import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import tar from 'tar-stream';
import {
  type Download,
  type DownloadFile,
  type ExportFile,
  ZerofleetError,
} from '../../../contracts/index.js';
import type { ObjectStore } from '../../../platform/object-store/common/port.js';
import { sendObject } from '../../http/send-object.js';
import { type FileSet, findFiles } from '../../jobs/download-files.js';
import type { OperationHandler } from '../types.js';

export const createDownloadUrls: OperationHandler<'createDownloadUrls'> = async (
  request,
): Promise<Download> => {
  const { objects } = request.server.services;
  const { checkpoint_id } = request.params;
  const { expires_seconds = 3600, via = 'auto', ...kind } = request.body ?? {};
  const wanted = { ...kind, hold_ms: expires_seconds * 1000 };
  const set = await findFiles({ store: request.records, objects }, checkpoint_id, wanted);
  // Computed before the URLs are created, so the URLs are valid at least that long.
  const expiresAt = new Date(Date.now() + expires_seconds * 1000).toISOString();
  let isSigned = via === 'auto';
  const files: DownloadFile[] = [];
  for (const file of set.files) {
    const signed = isSigned ? await objects.downloadUrl(keyOf(set, file), expires_seconds) : null;
    isSigned = signed !== null;
    files.push({ ...file, url: signed ?? pathOf(checkpoint_id, set, file) });
  }
  return {
    checkpoint_id,
    ...(set.kind ?? { format: null, dtype: null, weights: null, tensorboard: null }),
    state_digest: set.state_digest,
    expires_at: isSigned ? expiresAt : null,
    files,
  };
};

/** Protection from retention after the request for a file: covers its transfer and the pause before the next file. */
const FILE_HOLD_MS = 3_600_000;

export const getCheckpointFile: OperationHandler<'getCheckpointFile'> = async (request, reply) => {
  const { objects } = request.server.services;
  const { name, ...kind } = request.query;
  const wanted = { ...kind, hold_ms: FILE_HOLD_MS };
  const set = await findFiles({ store: request.records, objects }, request.params.checkpoint_id, wanted);
  // Only listed files are served; a name is never turned into a key.
  const file = set.files.find((candidate) => candidate.name === name);
  if (!file)
    throw new ZerofleetError('export_not_found', 'there is no file of this name; download-urls lists them');
  const { bytes, sha256 } = file;
  return sendObject(request, reply, { key: keyOf(set, file), bytes, sha256 });
};

/** Protection from retention during the transfer of all files. */
const ARCHIVE_HOLD_MS = 86_400_000;

export const getCheckpointArchive: OperationHandler<'getCheckpointArchive'> = async (request, reply) => {
  const { objects } = request.server.services;
  const { checkpoint_id } = request.params;
  const wanted = { ...request.query, hold_ms: ARCHIVE_HOLD_MS };
  const set = await findFiles({ store: request.records, objects }, checkpoint_id, wanted);
  const files = set.files.map((file) => ({
    ...file,
    key: keyOf(set, file),
    name: `${checkpoint_id}/${file.name}`,
  }));
  reply
    .header('cache-control', 'private, no-store')
    .header('content-disposition', `attachment; filename="${checkpoint_id}.tar"`)
    .type('application/x-tar');
  return reply.send(archiveOf(objects, request.method === 'HEAD' ? [] : files));
};

/** A tar archive that is written as it is read. A file that cannot be read, or is incomplete, breaks it off. */
function archiveOf(
  objects: Pick<ObjectStore, 'stream'>,
  files: readonly { key: string; name: string; bytes: number }[],
): Readable {
  const pack = tar.pack();
  const write = async () => {
    for (const { key, name, bytes: size } of files)
      await pipeline(await objects.stream(key), pack.entry({ name, size }));
    pack.finalize();
  };
  write().catch((error: Error) => pack.destroy(error));
  return Readable.from(pack, { objectMode: false });
}

function keyOf({ prefix }: FileSet, { name }: ExportFile): string {
  return `${prefix}/${name}`;
}

function pathOf(checkpointId: string, { kind }: FileSet, { name }: ExportFile): string {
  const options = kind && { ...kind, tensorboard: String(kind.tensorboard) };
  return `/v1/checkpoints/${checkpointId}/file?${new URLSearchParams({ name, ...options })}`;
}
