import type { FastifyRequest } from 'fastify';
import fp from 'fastify-plugin';
import { ZerofleetError } from '../../contracts/index.js';
import { createRuntime } from '../../graders/default-runtime.js';
import { Turns } from '../../platform/process/turns.js';
import { ProjectRecords } from '../access/project-records.js';
import { Copies } from '../copies/copies.js';
import { DatasetCopies } from '../datasets/copies.js';
import { KeyWatch } from '../http/key-watch.js';
import { ProjectGate } from '../http/project-gate.js';
import { traceOf } from '../http/request-trace.js';
import { createInspector } from '../inspection/inspector.js';
import { MAX_PENDING } from '../jobs/session-calls.js';
import { BucketTokenizers } from '../models/bucket-tokenizers.js';
import { ModelCopies } from '../models/copies.js';
import type { ApiServices } from '../services.js';

/** Services that this plugin makes of the others. */
type Made =
  | 'keyWatch'
  | 'datasetCopies'
  | 'inspector'
  | 'graders'
  | 'grades'
  | 'tokenizers'
  | 'modelCopies'
  | 'tensors'
  | 'rawBodies'
  | 'appends'
  | 'closing';

/** Large requests and answers in progress. */
const AT_ONCE = { of_project: 4, of_all: 16 };
type ServicesOptions = Omit<ApiServices, Made> & { graderPython: string };

/** Provides the services of the handlers, and signals the shutdown to them. */
export default fp<ServicesOptions>(
  async (app, options) => {
    const closing = new AbortController();
    const keyWatch = new KeyWatch(options.store, (error) => app.log.warn({ err: error }, 'keys of streams'));
    app.addHook('onClose', () => keyWatch.close());
    const { store, objects, limits } = options;
    const copies = new Copies({ store, log: app.log });
    const inspector = createInspector(limits);
    const graders = createRuntime(options.graderPython, options.addresses);
    const copying = { store, objects, inspector, limits, log: app.log, copies, closing: closing.signal };
    const datasetCopies = new DatasetCopies(copying);
    const modelCopies = new ModelCopies(copying);
    app.addHook('onClose', async () => {
      await copies.close();
      await inspector.close();
      await graders.close();
    });
    const draining = AbortSignal.any([options.draining, closing.signal]);
    app.decorate('services', {
      ...options,
      keyWatch,
      datasetCopies,
      modelCopies,
      inspector,
      graders,
      grades: new ProjectGate('grades', AT_ONCE),
      tokenizers: new BucketTokenizers(options.sources, inspector),
      tensors: new ProjectGate('tensors', AT_ONCE),
      rawBodies: new ProjectGate('calls', AT_ONCE),
      appends: new Turns(
        MAX_PENDING,
        () =>
          new ZerofleetError(
            'too_many_calls',
            `${MAX_PENDING} calls of the session are being stored; wait for them`,
          ),
      ),
      closing: closing.signal,
      draining,
    });
    app.decorateRequest('operation', null);
    app.decorateRequest('principal', null);
    app.decorateRequest('session', null);
    app.decorateRequest('trace', {
      getter(this: FastifyRequest) {
        return traceOf(this.raw);
      },
    });
    app.decorateRequest('records', {
      getter(this: FastifyRequest) {
        if (this.principal === null)
          throw new ZerofleetError('internal_error', 'records without a principal');
        return new ProjectRecords(options.store, this.principal.project);
      },
    });
    // Before Fastify waits for open requests: a stream is an open request until it is aborted.
    app.addHook('preClose', async () => closing.abort());
    // An existing connection may still send requests. They get a problem document.
    app.addHook('onRequest', (request, reply, done) => {
      request.operation = request.routeOptions.config.operation ?? null;
      if (!closing.signal.aborted) return done();
      reply.header('connection', 'close');
      done(new ZerofleetError('shutting_down', 'the server is shutting down'));
    });
  },
  { name: 'services' },
);
