/** `/files`: datasets of JSONL for training, and the metrics of jobs as result files. */
import { Readable } from 'node:stream';
import type { MultipartFile } from '@fastify/multipart';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { FileDeleted, FileObject } from 'openai/resources/files';
import { bodyOf } from '../../clients/typescript/transport.js';
import type { Dataset } from '../../contracts/index.js';
import { sendMetrics } from '../metric-files/send.js';
import { notSupported, Refusal } from './errors.js';
import { jobOfResults, RESULTS_FORMAT, resultsFile, resultsOf } from './jobs/results.js';
import { ownApi } from './own-api.js';
import { type ListParams, listOf, secondsOf } from './pages.js';

interface Identified {
  Params: { id: string };
}

interface FileQuery extends ListParams {
  purpose?: string;
  order?: string;
}

export const PURPOSE = 'fine-tune';
const MAX_NAME = 100;

export async function fileRoutes(app: FastifyInstance): Promise<void> {
  app.post('/files', async (request) => fileOf(await receive(request)));

  app.get<{ Querystring: FileQuery }>('/files', async (request) => {
    const { purpose = PURPOSE, order = 'desc', ...params } = request.query;
    if (order !== 'desc') throw notSupported('order', 'files are listed newest first; omit order');
    if (purpose !== PURPOSE) return listOf(params, async () => ({ data: [], next_cursor: null }), fileOf);
    const { http } = ownApi(request);
    return listOf(
      params,
      (query) => bodyOf('files', http.GET('/v1/datasets', { params: { query } })),
      fileOf,
    );
  });

  app.get<Identified>('/files/:id', async (request): Promise<FileObject> => {
    const { id } = request.params;
    const job = jobOfResults(id);
    const api = ownApi(request);
    const { store } = request.server.services;
    return job === null ? fileOf(await api.datasets.get(id)) : resultsFile(store, await api.jobs.get(job));
  });

  app.get<Identified>('/files/:id/content', async (request, reply) => {
    const { id } = request.params;
    const job = jobOfResults(id);
    const api = ownApi(request);
    const { store } = request.server.services;
    if (job !== null) {
      const found = await api.jobs.get(job);
      return sendMetrics(request, reply, found, RESULTS_FORMAT, () => resultsOf(store, found.id));
    }
    const content = await api.datasets.content(id);
    return reply.type('application/octet-stream').send(Readable.fromWeb(content as never));
  });

  app.delete<Identified>('/files/:id', async (request): Promise<FileDeleted> => {
    const { id } = request.params;
    if (jobOfResults(id) !== null)
      throw notSupported('file_id', 'results belong to their job; delete it with DELETE /v1/jobs/{job_id}');
    await ownApi(request).datasets.delete(id);
    return { id, deleted: true, object: 'file' };
  });
}

/**
 * Stores the file while it arrives. A wrong purpose is refused before it, or, if it comes behind the file, removes it.
 */
async function receive(request: FastifyRequest): Promise<Dataset> {
  const { datasets } = ownApi(request);
  let hasPurpose = false;
  let stored: Dataset | null = null;
  try {
    for await (const part of request.parts()) {
      if (part.type === 'field') {
        checkField(part.fieldname, part.value);
        hasPurpose = true;
      } else if (part.fieldname === 'file' && stored === null) stored = await store(part, datasets);
      else throw new Refusal(400, 'invalid_parameter', part.fieldname, 'send one file, as the field file');
    }
    if (stored === null) throw new Refusal(400, 'missing_parameter', 'file', 'the form has no field file');
    if (!hasPurpose) {
      const message = `the form has no field purpose; send ${PURPOSE}`;
      throw new Refusal(400, 'missing_parameter', 'purpose', message);
    }
    return stored;
  } catch (error) {
    if (stored !== null) await datasets.delete(stored.id);
    throw error;
  }
}

function store({ filename, file }: MultipartFile, datasets: ReturnType<typeof ownApi>['datasets']) {
  return datasets.create(nameOf(filename), Readable.toWeb(file) as ReadableStream<Uint8Array>, 'jsonl');
}

/** Returns the name of the dataset of a file. */
export function nameOf(filename: string): string {
  return [...filename].slice(-MAX_NAME).join('') || 'file';
}

/** Checks a field besides the content. @throws Refusal */
export function checkField(name: string, value: unknown): void {
  if (name !== 'purpose')
    throw notSupported(
      name.replace(/\[.*/, ''),
      `${name} is not supported: files stay until they are deleted`,
    );
  if (value !== PURPOSE)
    throw notSupported(
      'purpose',
      `files are for training here; the purpose must be ${PURPOSE}, not ${value}`,
    );
}

export function fileOf({ id, bytes, created_at, name }: Dataset): FileObject {
  return {
    id,
    object: 'file',
    bytes,
    created_at: secondsOf(created_at),
    filename: name,
    purpose: PURPOSE,
    status: 'processed',
  };
}
