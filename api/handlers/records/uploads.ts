import type { UploadUrls } from '../../../contracts/index.js';
import { completeUpload as complete } from '../../datasets/complete-upload.js';
import { UploadSession } from '../../datasets/upload-session.js';
import { whileSilent } from '../../http/long-request.js';
import { uploadBody } from '../../http/upload-body.js';
import type { OperationHandler, OperationRequest } from '../types.js';

export const createUpload: OperationHandler<'createUpload'> = async (request, reply) => {
  const { store, objects, limits } = request.server.services;
  const { project } = request.records;
  const { body } = request;
  const session = await UploadSession.create({ objects, store }, body, { project, limits });
  const upload = await session.describe(null);
  return reply.code(201).header('location', `/v1/uploads/${upload.id}`).send(upload);
};

export const getUpload: OperationHandler<'getUpload'> = async (request) => {
  const session = await open(request);
  const outcome = await session.outcome();
  const dataset = outcome && (await request.records.getDataset(outcome.id));
  return session.describe(dataset?.id ?? null);
};

/** Maximum number of URLs in one answer. */
const MAX_URLS = 1_000;

export const createUploadUrls: OperationHandler<'createUploadUrls'> = async (
  request,
): Promise<UploadUrls> => {
  const session = await open(request);
  const {
    part_numbers = null,
    sha256 = null,
    expires_seconds: seconds = 3600,
    via = 'auto',
  } = request.body ?? {};
  // Computed before the URLs are created, so the URLs are valid at least that long.
  const expiresAt = new Date(Date.now() + seconds * 1000).toISOString();
  const { is_signed, parts } = await session.partUrls(part_numbers, {
    seconds,
    via,
    most: MAX_URLS,
    sha256,
  });
  return { upload_id: session.announced.id, expires_at: is_signed ? expiresAt : null, parts };
};

export const putUploadPart: OperationHandler<'putUploadPart'> = async (request, reply) => {
  const session = await open(request);
  await session.put(request.params.part_number, uploadBody(request.body));
  return reply.code(204).send();
};

export const completeUpload: OperationHandler<'completeUpload'> = async (request, reply) => {
  const { server, log } = request;
  const session = await open(request);
  const deps = { ...server.services, log };
  const completion = { session, content: () => session.content() };
  const dataset = await whileSilent(request, reply, (signal) => complete(deps, completion, signal));
  return reply.code(201).header('location', `/v1/datasets/${dataset.id}`).send(dataset);
};

export const deleteUpload: OperationHandler<'deleteUpload'> = async (request, reply) => {
  await (await open(request)).remove(request.server.services.store);
  return reply.code(204).send();
};

type PerPart = Pick<OperationRequest<'getUpload'>, 'server' | 'records' | 'params'>;

function open({ server, records, params }: PerPart): Promise<UploadSession> {
  return UploadSession.open(server.services.objects, records.project, params.upload_id);
}
