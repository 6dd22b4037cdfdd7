/** `/files`: datasets of JSONL for training, and the metrics of jobs as result files. */
import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { FileDeleted, FileObject } from 'openai/resources/files';
import { type Dataset, datasetKey, type Job } from '../../contracts/index.js';
import { findJob, found } from '../access/found.js';
import { receiveDataset, removeDataset } from '../datasets/store-dataset.js';
import { requireOperation } from '../http/authenticate.js';
import { limitSilence } from '../http/long-request.js';
import { sendMetrics } from '../metric-files/send.js';
import { notSupported, Refusal } from './errors.js';
import { isId, requireId } from './ids.js';
import { jobOfResults, RESULTS_FORMAT, resultsFile, resultsOf } from './jobs/results.js';
import { type ListParams, listOf, secondsOf, unknownCursor } from './pages.js';
import { routeAs } from './route-as.js';

interface Identified {
  Params: { file_id: string };
}

interface FileQuery extends ListParams {
  purpose?: string;
  order?: string;
}

export const PURPOSE = 'fine-tune';
const MAX_NAME = 100;

export async function fileRoutes(app: FastifyInstance): Promise<void> {
  const { objects, store } = app.services;

  app.post('/files', asUpload(app), async (request, reply) => {
    const dataset = await receive(request);
    reply.header('location', `/v1/datasets/${dataset.id}`);
    return fileOf(dataset);
  });

  app.get<{ Querystring: FileQuery }>('/files', routeAs(app, 'listDatasets'), async (request) => {
    const { purpose = PURPOSE, order = 'desc', ...params } = request.query;
    if (order !== 'desc') throw notSupported('order', 'files are listed newest first; omit order');
    if (purpose !== PURPOSE) return listOf(params, async () => ({ data: [], next_cursor: null }), fileOf);
    if (params.after !== undefined && !isId('dataset', params.after)) throw unknownCursor(params.after);
    return listOf(params, (page) => request.records.listDatasets(page), fileOf);
  });

  app.get<Identified>('/files/:file_id', async (request): Promise<FileObject> => {
    const { file_id: id } = request.params;
    const job = jobOfResults(id);
    return job === null
      ? fileOf(await findDataset(request, id))
      : resultsFile(store, await jobOf(request, job));
  });

  app.get<Identified>('/files/:file_id/content', async (request, reply) => {
    const { file_id: id } = request.params;
    const job = jobOfResults(id);
    if (job !== null) {
      const measured = await jobOf(request, job);
      return sendMetrics(request, reply, measured, RESULTS_FORMAT, () => resultsOf(store, measured.id));
    }
    const { id: dataset } = await findDataset(request, id);
    const content = await objects.stream(datasetKey(dataset));
    return reply.type('application/octet-stream').send(Readable.from(content, { objectMode: false }));
  });

  app.delete<Identified>(
    '/files/:file_id',
    routeAs(app, 'deleteDataset'),
    async (request): Promise<FileDeleted> => {
      const { file_id: id } = request.params;
      if (jobOfResults(id) !== null)
        throw notSupported('file_id', 'results belong to their job; delete it with DELETE /v1/jobs/{job_id}');
      await removeDataset(objects, request.records, requireId('dataset', id));
      return { id, deleted: true, object: 'file' };
    },
  );
}

/** A form has another boundary in each request, so that no repetition of a key would be the same request. */
function asUpload(app: FastifyInstance) {
  const { operation } = routeAs(app, 'createDataset').config;
  return { config: { operation: { ...operation, isKeyed: false } } };
}

async function findDataset(request: FastifyRequest, id: string): Promise<Dataset> {
  requireOperation(request, 'getDataset');
  return found(await request.records.getDataset(requireId('dataset', id)), 'dataset', id);
}

/** Finds the job of a result file. */
async function jobOf(request: FastifyRequest, id: string): Promise<Job> {
  requireOperation(request, 'getJob', { job_id: id });
  return findJob(request.records, requireId('job', id));
}

/**
 * Stores the file while it arrives. A wrong purpose is refused before it, or, if it comes behind the file, removes it.
 */
async function receive(request: FastifyRequest): Promise<Dataset> {
  const { objects } = request.server.services;
  let hasPurpose = false;
  let stored: Dataset | null = null;
  try {
    for await (const part of request.parts()) {
      if (part.type === 'field') {
        checkField(part.fieldname, part.value);
        hasPurpose = true;
      } else if (part.fieldname === 'file' && stored === null) {
        stored = await receiveDataset(request, { name: nameOf(part.filename), format: 'jsonl' }, part.file);
        // The rest of the form follows.
        limitSilence(request);
      } else throw new Refusal(400, 'invalid_parameter', part.fieldname, 'send one file, as the field file');
    }
    if (stored === null) throw new Refusal(400, 'missing_parameter', 'file', 'the form has no field file');
    if (!hasPurpose) {
      const message = `the form has no field purpose; send ${PURPOSE}`;
      throw new Refusal(400, 'missing_parameter', 'purpose', message);
    }
    return stored;
  } catch (error) {
    if (stored !== null) await removeDataset(objects, request.records, stored.id);
    throw error;
  }
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
