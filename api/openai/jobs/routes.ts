/** `/fine_tuning/jobs`. */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Job } from '../../../contracts/index.js';
import { findJob } from '../../access/found.js';
import { requireOperation } from '../../http/authenticate.js';
import { onClosed } from '../../http/long-request.js';
import { sendEvents } from '../../http/sse.js';
import { cancelJob, pauseJob, resumeJob } from '../../jobs/changes/control-job.js';
import { createJob } from '../../jobs/changes/create-job.js';
import { followJob } from '../../jobs/follow.js';
import { Refusal } from '../errors.js';
import { isId, requireId } from '../ids.js';
import { findBase } from '../models.js';
import { type ListParams, listOf, unknownCursor } from '../pages.js';
import { routeAs } from '../route-as.js';
import { afterCheckpoint, checkpointsPage } from './checkpoints.js';
import { parseCreate, specOf } from './create.js';
import { eventsPage, messagesOf } from './events.js';
import { fineTuningJob } from './job.js';

interface JobRoute {
  Params: { job_id: string };
  Querystring: ListParams;
}

const METADATA = /^metadata\[(.+)\]$/;
const LABEL = /^[^=]{1,63}=.{0,255}$/u;
const MAX_LABELS = 16;

/** Requests that change a job. */
const CONTROLS = [
  ['cancel', 'cancelJob', cancelJob],
  ['pause', 'pauseJob', pauseJob],
  ['resume', 'resumeJob', resumeJob],
] as const;

export async function jobRoutes(app: FastifyInstance): Promise<void> {
  const { store, limits, contract, closing, keyWatch } = app.services;

  app.post('/fine_tuning/jobs', routeAs(app, 'createJob'), async (request, reply) => {
    const body = parseCreate(request.body);
    const document = specOf(body, await findBase(request, body.model));
    const schemaErrors = contract.jobSpecErrors(document);
    const { job } = await createJob(request, reply, { document, schemaErrors });
    reply.header('location', `/v1/jobs/${job.id}`);
    return fineTuningJob(job);
  });

  app.get<{ Querystring: ListParams & Record<string, string> }>(
    '/fine_tuning/jobs',
    routeAs(app, 'listJobs'),
    async ({ query, records }) => {
      const { after } = query;
      if (after !== undefined && !isId('job', after)) throw unknownCursor(after);
      const label = labelsOf(query);
      return listOf(query, (page) => records.listJobs({ ...page, label }), fineTuningJob);
    },
  );

  app.get<JobRoute>('/fine_tuning/jobs/:job_id', routeAs(app, 'getJob'), async (request) =>
    fineTuningJob(await find(request)),
  );

  for (const [name, operationId, control] of CONTROLS)
    app.post<JobRoute>(`/fine_tuning/jobs/:job_id/${name}`, routeAs(app, operationId), async (request) =>
      fineTuningJob(await control(request, requireId('job', request.params.job_id))),
    );

  app.get<JobRoute & { Querystring: { stream?: string } }>(
    '/fine_tuning/jobs/:job_id/events',
    routeAs(app, 'listJobEvents'),
    async (request, reply) => {
      const job = await find(request);
      if (request.query.stream !== 'true')
        return listOf(
          request.query,
          (page) => eventsPage(store, job, page),
          (event) => event,
        );
      requireOperation(request, 'streamJob', { job_id: job.id });
      const gone = new AbortController();
      onClosed(reply, () => gone.abort());
      const followed = followJob(store, job.id, {
        after: null,
        kinds: ['event', 'metric'],
        quietMs: limits.heartbeat_ms,
        signal: AbortSignal.any([gone.signal, closing, keyWatch.watch(request, gone.signal)]),
      });
      return sendEvents(reply, messagesOf(job, followed));
    },
  );

  app.get<JobRoute>(
    '/fine_tuning/jobs/:job_id/checkpoints',
    routeAs(app, 'listJobCheckpoints'),
    async (request) => {
      const { records, query } = request;
      const job = await find(request);
      return listOf(
        { ...query, ...(await afterCheckpoint(records, job, query)) },
        (page) => checkpointsPage(records, store, job, page),
        (checkpoint) => checkpoint,
      );
    },
  );
}

function find({ records, params }: FastifyRequest<JobRoute>): Promise<Job> {
  return findJob(records, requireId('job', params.job_id));
}

/** Returns the labels of the `metadata` in a query. @throws Refusal */
function labelsOf(query: Readonly<Record<string, string>>): string[] {
  const labels = Object.entries(query).flatMap(([name, value]) => {
    const key = METADATA.exec(name)?.[1];
    return key === undefined ? [] : [`${key}=${value}`];
  });
  if (labels.length <= MAX_LABELS && labels.every((label) => LABEL.test(label))) return labels;
  const message = `filter by at most ${MAX_LABELS} pairs, with names of 1 to 63 characters without = and values of at most 255`;
  throw new Refusal(400, 'invalid_parameter', 'metadata', message);
}
