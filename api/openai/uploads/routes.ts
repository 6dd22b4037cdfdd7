/** `/uploads`: a file in parts. It is an upload of this server's own API whose parts have any sizes. */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Upload } from 'openai/resources/uploads';
import type { UploadPart } from 'openai/resources/uploads/parts';
import { decodeTime } from 'ulid';
import type { Upload as Announced, Dataset } from '../../../contracts/index.js';
import { Type } from '../../../platform/schema.js';
import { completeUpload } from '../../datasets/complete-upload.js';
import { UploadSession } from '../../datasets/upload-session.js';
import { whileSilent } from '../../http/long-request.js';
import { Refusal } from '../errors.js';
import { checkField, fileOf, nameOf, PURPOSE } from '../files.js';
import { requireId } from '../ids.js';
import { nullable, parserOf, secondsOf } from '../pages.js';
import { routeAs } from '../route-as.js';
import { expiryOf, MAX_PARTS, notPending, statusOf, UploadParts } from './parts.js';

interface Identified {
  Params: { upload_id: string };
}
type OfUpload = FastifyRequest<Identified>;

const parseCreation = parserOf(
  Type.Object(
    {
      bytes: Type.Integer({ minimum: 1 }),
      filename: Type.String({ minLength: 1 }),
      mime_type: Type.String(),
      purpose: Type.String(),
      expires_after: Type.Optional(Type.Unsafe<unknown>()),
    },
    { additionalProperties: false },
  ),
);

const parseCompletion = parserOf(
  Type.Object(
    {
      part_ids: Type.Array(Type.String({ maxLength: 64 }), {
        minItems: 1,
        maxItems: MAX_PARTS,
        uniqueItems: true,
      }),
      md5: nullable(Type.String({ pattern: '^[0-9a-fA-F]{32}$' })),
    },
    { additionalProperties: false },
  ),
);

export async function uploadRoutes(app: FastifyInstance): Promise<void> {
  const { store, objects, limits } = app.services;

  app.post('/uploads', routeAs(app, 'createUpload'), async (request, reply): Promise<Upload> => {
    const { bytes, filename, purpose, expires_after } = parseCreation(request.body);
    checkField('purpose', purpose);
    if ((expires_after ?? null) !== null) checkField('expires_after', expires_after);
    const asked = { name: nameOf(filename), format: 'jsonl' as const, bytes };
    const { project } = request.records;
    const { announced } = await UploadSession.create({ objects, store }, asked, { project, limits });
    reply.header('location', `/v1/uploads/${announced.id}`);
    return uploadOf(announced, 'pending');
  });

  app.post<Identified>('/uploads/:upload_id/parts', routeAs(app, 'putUploadPart'), async (request) => {
    const session = await open(request);
    const id = await receive(request, new UploadParts(objects, session));
    return partOf(id, session.announced.id);
  });

  app.post<Identified>(
    '/uploads/:upload_id/complete',
    routeAs(app, 'completeUpload'),
    async (request, reply) => {
      const session = await open(request);
      const { part_ids, md5 = null } = parseCompletion(request.body);
      const status = await statusOf(session);
      // The client repeats the request when it lost the answer.
      if (status !== 'pending' && status !== 'completed') throw notPending(session, status);
      const deps = { ...app.services, log: request.log };
      const content = () => new UploadParts(objects, session).content(part_ids, md5);
      const complete = (signal: AbortSignal) => completeUpload(deps, { session, content }, signal);
      const dataset = await whileSilent(request, reply, complete);
      reply.header('location', `/v1/datasets/${dataset.id}`);
      return uploadOf(session.announced, 'completed', dataset);
    },
  );

  app.post<Identified>('/uploads/:upload_id/cancel', routeAs(app, 'deleteUpload'), async (request) => {
    const session = await open(request);
    if ((await session.cancel(store)) !== null) throw notPending(session, 'completed');
    return uploadOf(session.announced, 'cancelled');
  });
}

/** Finds the upload of a request. @throws ZerofleetError `upload_not_found` */
async function open({ params, records, server }: OfUpload): Promise<UploadSession> {
  const id = requireId('upload', params.upload_id);
  return UploadSession.open(server.services.objects, records.project, id);
}

/** Stores the part that a form has. @returns its id */
async function receive(request: FastifyRequest, parts: UploadParts): Promise<string> {
  let id: string | null = null;
  for await (const part of request.parts()) {
    if (part.type === 'field' || part.fieldname !== 'data' || id !== null)
      throw new Refusal(
        400,
        'invalid_parameter',
        part.fieldname,
        'send the part as one file, as the field data',
      );
    id = await parts.add(part.file);
  }
  if (id === null) throw new Refusal(400, 'missing_parameter', 'data', 'the form has no field data');
  return id;
}

function partOf(id: string, uploadId: string): UploadPart {
  const createdAt = Math.floor(decodeTime(id.slice('part_'.length)) / 1000);
  return { id, object: 'upload.part', created_at: createdAt, upload_id: uploadId };
}

function uploadOf(
  upload: Pick<Announced, 'id' | 'name' | 'bytes' | 'created_at'>,
  status: Upload['status'],
  dataset: Dataset | null = null,
): Upload {
  const { id, name, bytes, created_at } = upload;
  return {
    id,
    object: 'upload',
    bytes,
    created_at: secondsOf(created_at),
    expires_at: Math.floor(expiryOf(upload) / 1000),
    filename: name,
    purpose: PURPOSE,
    status,
    file: dataset && fileOf(dataset),
  };
}
