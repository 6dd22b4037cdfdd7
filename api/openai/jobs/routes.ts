/** `/fine_tuning/jobs`. */
import type { FastifyInstance } from 'fastify';
import type { Zerofleet } from '../../../clients/typescript/index.js';
import { bodyOf } from '../../../clients/typescript/transport.js';
import { onClosed } from '../../http/long-request.js';
import { sendEvents, withHeartbeats } from '../../http/sse.js';
import { findBase } from '../models.js';
import { ownApi } from '../own-api.js';
import { type ListParams, listOf } from '../pages.js';
import { afterCheckpoint, checkpointsPage } from './checkpoints.js';
import { parseCreate, specOf } from './create.js';
import { eventsPage, streamOf } from './events.js';
import { fineTuningJob } from './job.js';

interface JobRoute {
  Params: { id: string };
  Querystring: ListParams;
}

const METADATA = /^metadata\[(.+)\]$/;

/** Requests that change a job. */
const CONTROLS = {
  cancel: (api: Zerofleet, id: string) => api.jobs.cancel(id),
  pause: (api: Zerofleet, id: string) => api.jobs.pause(id),
  resume: (api: Zerofleet, id: string) => api.jobs.resume(id),
};

export async function jobRoutes(app: FastifyInstance): Promise<void> {
  app.post('/fine_tuning/jobs', async (request) => {
    const api = ownApi(request);
    const body = parseCreate(request.body);
    const base = await findBase(request, body.model);
    return fineTuningJob(await api.jobs.create(specOf(body, base)));
  });

  app.get<{ Querystring: ListParams & Record<string, string> }>('/fine_tuning/jobs', async (request) => {
    const { http } = ownApi(request);
    const label = Object.entries(request.query).flatMap(([name, value]) => {
      const key = METADATA.exec(name)?.[1];
      return key === undefined ? [] : [`${key}=${value}`];
    });
    return listOf(
      request.query,
      (page) => {
        const query = { ...page, ...(label.length > 0 && { label }) };
        return bodyOf('jobs', http.GET('/v1/jobs', { params: { query } }));
      },
      fineTuningJob,
    );
  });

  app.get<JobRoute>('/fine_tuning/jobs/:id', async (request) =>
    fineTuningJob(await ownApi(request).jobs.get(request.params.id)),
  );

  for (const [name, control] of Object.entries(CONTROLS))
    app.post<JobRoute>(`/fine_tuning/jobs/:id/${name}`, async (request) =>
      fineTuningJob(await control(ownApi(request), request.params.id)),
    );

  app.get<JobRoute & { Querystring: { stream?: string } }>(
    '/fine_tuning/jobs/:id/events',
    async (request, reply) => {
      const api = ownApi(request);
      const { id } = request.params;
      const job = await api.jobs.get(id);
      const { store } = request.server.services;
      if (request.query.stream !== 'true')
        return listOf(
          request.query,
          (page) => eventsPage(store, job, page),
          (event) => event,
        );
      const gone = new AbortController();
      onClosed(reply, () => gone.abort());
      const { heartbeat_ms } = request.server.services.limits;
      return sendEvents(reply, withHeartbeats(streamOf(api, id, gone.signal), heartbeat_ms));
    },
  );

  app.get<JobRoute>('/fine_tuning/jobs/:id/checkpoints', async (request) => {
    const api = ownApi(request);
    const job = await api.jobs.get(request.params.id);
    const { store } = request.server.services;
    return listOf(
      { ...request.query, ...(await afterCheckpoint(api, job, request.query)) },
      (page) => checkpointsPage(api, store, job, page),
      (checkpoint) => checkpoint,
    );
  });
}
