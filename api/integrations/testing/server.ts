/** HTTP server of an experiment tracker for tests, which fails as the test asks. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gunzipSync } from 'node:zlib';

export interface TrackerRequest {
  /** Below the URL of the server. */
  path: string;
  query: URLSearchParams;
  body: Record<string, unknown>;
}

/** The answer to a request that has no effect. */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    readonly errorCode: string,
  ) {
    super(errorCode);
  }
}

/** A run, in words of all trackers. */
export interface SeenRun {
  status: 'RUNNING' | 'FINISHED' | 'FAILED' | 'KILLED';
  /** Steps of `loss`, in the order in which they were logged. */
  steps: number[];
  /** Newest step that the run itself tells. */
  step: number;
}

/** A tracker in memory. */
export interface TrackerStore {
  /** In the order in which they were created. */
  seen(): SeenRun[];
  nameOf(request: TrackerRequest): string;
  /** @throws Refusal */
  handle(request: TrackerRequest): object;
  errorBody(code: string): object;
}

export interface TestTracker<S extends TrackerStore = TrackerStore> {
  url: string;
  store: S;
  /** `authorization` of each request. */
  authorizations: readonly (string | undefined)[];
  /**
   * Fault of the requests whose names have this end. A status: it is the answer; `lost`: the request has its effect and
   * no answer; `hang`: no answer. Null: no fault.
   */
  fault: { request: string; response: number | 'lost' | 'hang' } | null;
  /** Number of requests that met the fault. */
  faults: number;
  /** Number of requests. */
  requests: number;
  /** Resolves once `condition` holds; it is evaluated after each request. */
  until(condition: () => boolean): Promise<void>;
  close(): Promise<void>;
}

export async function startTestTracker<S extends TrackerStore>(store: S): Promise<TestTracker<S>> {
  const authorizations: (string | undefined)[] = [];
  let wake: () => void = () => undefined;

  const server = createServer(async (incoming, reply) => {
    authorizations.push(incoming.headers.authorization);
    const request = await readRequest(incoming);
    const isFaulty = tracker.fault !== null && store.nameOf(request).endsWith(tracker.fault.request);
    const response = isFaulty ? tracker.fault?.response : null;
    tracker.requests += 1;
    if (isFaulty) tracker.faults += 1;
    try {
      if (typeof response === 'number') throw new Refusal(response, 'INTERNAL_ERROR');
      if (response === 'hang') return;
      const answered = store.handle(request);
      if (response === 'lost') incoming.socket.destroy();
      else answer(reply, 200, answered);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      answer(reply, error.status, store.errorBody(error.errorCode));
    } finally {
      wake();
    }
  });

  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const tracker: TestTracker<S> = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/base/`,
    store,
    authorizations,
    fault: null,
    faults: 0,
    requests: 0,
    async until(condition) {
      while (!condition()) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
  return tracker;
}

async function readRequest(request: IncomingMessage): Promise<TrackerRequest> {
  const { pathname, searchParams: query } = new URL(request.url ?? '', 'http://localhost');
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece as Buffer);
  const sent = Buffer.concat(pieces);
  const text = (request.headers['content-encoding'] === 'gzip' ? gunzipSync(sent) : sent).toString('utf8');
  const isJson = request.headers['content-type'] === 'application/json';
  return { path: pathname.replace(/^\/base\//, ''), query, body: isJson ? JSON.parse(text) : {} };
}

function answer(reply: ServerResponse, status: number, body: object): void {
  reply.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}
