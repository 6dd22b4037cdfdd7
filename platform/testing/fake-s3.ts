/** S3 servers that misbehave, and a store on one of them. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Test } from 'tap';
import { S3Store } from '../object-store/s3/store.js';
import type { UploadLimits } from '../object-store/s3/upload.js';

export type Answer = (request: IncomingMessage, response: ServerResponse) => void;

/** Starts a server with the given answers in order; the last answer repeats. */
export async function startFake(t: Test, answers: Answer[], limits?: UploadLimits) {
  const seen: string[] = [];
  const server = createServer((request, response) => {
    const answer = answers[Math.min(seen.length, answers.length - 1)] as Answer;
    seen.push(`${request.method} ${request.url}`);
    request.resume().on('end', () => answer(request, response));
  });
  // Idle connections stay open.
  server.keepAliveTimeout = 0;
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const credentials = { accessKeyId: 'a', secretAccessKey: 'b' };
  const store = new S3Store({
    bucket: 'tests',
    prefix: '',
    endpoint,
    region: 'us-east-1',
    credentials,
    maxAttempts: 3,
    ...(limits && { limits }),
  });
  t.teardown(() => store.close());
  return { store, seen };
}

export function standInStore(t: Test, endpoint: string): S3Store {
  const store = new S3Store({
    bucket: 'tests',
    prefix: '',
    endpoint,
    region: 'us-east-1',
    credentials: { accessKeyId: 'a', secretAccessKey: 'b' },
    limits: { partBytes: 1000, parallelParts: 2 },
  });
  t.teardown(() => store.close());
  return store;
}

export function fails(status: number, code: string): Answer {
  return (_request, response) => {
    response.writeHead(status, { 'content-type': 'application/xml' });
    response.end(`<?xml version="1.0"?><Error><Code>${code}</Code><Message>${code}</Message></Error>`);
  };
}

export const succeeds: Answer = (_request, response) => {
  response.writeHead(200, { etag: '"1"' });
  response.end();
};

export const hangsUp: Answer = (request) => request.socket.destroy();

export const startsUpload: Answer = (_request, response) => {
  response.writeHead(200, { 'content-type': 'application/xml' });
  response.end(
    '<?xml version="1.0"?><InitiateMultipartUploadResult><UploadId>u1</UploadId></InitiateMultipartUploadResult>',
  );
};

export const refusesParts: Answer = (request, response) => {
  const refuses = fails(403, 'AccessDenied');
  const answer = { POST: startsUpload, PUT: refuses }[request.method ?? ''] ?? succeeds;
  answer(request, response);
};
