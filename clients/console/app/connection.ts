/** The HTTP API as the console uses it: the typed client, with the browser's session instead of a key. */
import { ApiError, ConnectionError, Zerofleet } from '../../typescript/index.js';
import type { Fault } from '../parts/fields.js';

export type { Fault };

/** The console may lie behind a path of a proxy. */
const baseUrl = new URL('.', location.href.replace(/#.*/, '')).href.replace(/\/$/, '');

export const client = new Zerofleet({ baseUrl });

/** The client without repetitions, for views that tell of a busy server and repeat themselves. */
export const impatient = new Zerofleet({ baseUrl, retry: { tries: 1 } });

/** The client with a token of its own, whatever the session of the browser. */
export const clientOf = (token: string) => new Zerofleet({ baseUrl, apiKey: token });

export function faultOf(error: unknown): Fault {
  if (error instanceof ApiError) {
    const { problem, status, message } = error;
    if (problem === null) return { code: `http_${status}`, message, fields: [] };
    return {
      code: problem.code,
      message: problem.detail ?? problem.title,
      fields: problem.errors ?? [],
    };
  }
  if (error instanceof ConnectionError)
    return { code: 'offline', message: 'The server does not answer.', fields: [] };
  return {
    code: 'internal_error',
    message: error instanceof Error ? error.message : String(error),
    fields: [],
  };
}

/** True for the error of a request that its view has aborted. */
export const isAborted = (error: unknown) => error instanceof DOMException && error.name === 'AbortError';
