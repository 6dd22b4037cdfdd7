import type { FastifyRequest } from 'fastify';
import type { Warning } from '../../../contracts/index.js';
import { jobWarnings } from '../../../job-document/index.js';
import { readGiven } from '../../../state/index.js';
import { findJob } from '../../access/found.js';
import { bodyErrors } from '../../http/body-errors.js';
import { sendJob, sendJobs } from '../../http/etag.js';
import { onClosed } from '../../http/long-request.js';
import { createJob as create, sendCreated, specLookups } from '../../jobs/changes/create-job.js';
import { type CheckedSpec, checkSpec } from '../../jobs/check-spec.js';
import { previewOf } from '../../jobs/preview.js';
import { plannedSpec } from '../../jobs/ready-spec.js';
import { requireFit } from '../../jobs/require-fit.js';
import { workOf } from '../../jobs/work.js';
import type { OperationHandler } from '../types.js';

/** A job's data is prepared first, so its event is among the first ones. */
const EVENTS_READ = 100;

export const createJob: OperationHandler<'createJob'> = async (request, reply) => {
  const schemaErrors = bodyErrors(request);
  if (request.query.dry_run) {
    const checked = await checkSpec(request.body, schemaErrors, specLookups(request));
    await requireFit(request, checked.spec);
    const { store, inspector } = request.server.services;
    const events = async (id: string) =>
      (await store.readStream(id, null, EVENTS_READ, ['event'])).filter((entry) => entry.kind === 'event');
    return reply.code(200).send({
      spec: plannedSpec(checked),
      estimate: await inspector.run(
        'estimateMemory',
        { spec: checked.spec },
        { owner: request.records.project },
      ),
      work: await workOf(checked.spec, { records: request.records, events }),
      warnings: [...jobWarnings(request.body, checked.spec), ...(await warningsOf(request, checked))],
    });
  }
  const { body: document } = request;
  return sendCreated(reply, await create(request, reply, { document, schemaErrors }), document);
};

/** Warnings about the beginning of the data, if data and tokenizer need not be copied first. */
async function warningsOf(
  request: Pick<FastifyRequest, 'records' | 'server'>,
  { spec, requiredCopies: { training, tokenizer, folder } }: CheckedSpec,
): Promise<Warning[]> {
  if ([...training, tokenizer, folder].some((copy) => copy !== null)) return [];
  return (await previewOf(request, spec, 0)).warnings;
}

export const listJobs: OperationHandler<'listJobs'> = async (request, reply) =>
  sendJobs(reply, await request.records.listJobs(request.query));

export const getJobDocument: OperationHandler<'getJobDocument'> = async ({ records, params, server }) => {
  const { id } = await findJob(records, params.job_id);
  return { given: await readGiven(server.services.objects, id) };
};

export const getJob: OperationHandler<'getJob'> = async (request, reply) => {
  const { records } = request;
  const { job_id: id } = request.params;
  const { wait, since_version } = request.query;
  const job = await findJob(records, id);
  const ifNoneMatch = request.headers['if-none-match'];
  if (wait === undefined) return sendJob(reply, job, ifNoneMatch);
  const gone = new AbortController();
  onClosed(reply, () => gone.abort());
  await records.waitVersion(id, since_version ?? job.state_version, {
    timeoutMs: Number.parseInt(wait, 10) * 1000,
    signal: AbortSignal.any([gone.signal, request.server.services.closing]),
  });
  return sendJob(reply, await findJob(records, id), ifNoneMatch);
};
