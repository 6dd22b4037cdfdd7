import { randomUUID } from 'node:crypto';
import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyBaseLogger } from 'fastify';
import type { ErrorCode } from '../../contracts/index.js';
import { PROBLEM_MEDIA_TYPE, type ProblemSource, toProblem } from './problem.js';

/** Node's error codes for unreadable or late requests. Other codes become `bad_request`. */
const CODE_OF_NODE_ERROR: Readonly<Record<string, ErrorCode>> = {
  HPE_HEADER_OVERFLOW: 'headers_too_large',
  ERR_HTTP_REQUEST_TIMEOUT: 'request_timeout',
};

const DETAILS: Partial<Record<ErrorCode, string>> = {
  headers_too_large: 'the headers of the request are larger than the server reads',
  request_timeout: 'the headers of the request did not arrive in time',
};

/** Answers a connection that sent no valid request with a problem document, and closes it. */
export function answerClientError(
  error: NodeJS.ErrnoException,
  socket: Socket,
  log: FastifyBaseLogger,
): void {
  // A disconnected client needs no answer.
  if (error.code === 'ECONNRESET' || socket.destroyed || !socket.writable) {
    socket.destroy();
    return;
  }
  const code = CODE_OF_NODE_ERROR[error.code ?? ''] ?? 'bad_request';
  const source: ProblemSource = {
    code,
    detail: DETAILS[code] ?? 'this is not valid HTTP',
    errors: [],
  };
  const problem = toProblem(source, `req_${randomUUID()}`);
  log.info({ code, request_id: problem.request_id, cause: error.code }, 'request refused');
  const body = JSON.stringify(problem);
  const head = [
    `HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}`,
    `content-type: ${PROBLEM_MEDIA_TYPE}`,
    `content-length: ${Buffer.byteLength(body)}`,
    `x-request-id: ${problem.request_id}`,
    'connection: close',
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`, () => socket.destroy());
}
