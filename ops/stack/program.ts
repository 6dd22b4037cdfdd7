/** Shared by programs that start a stack: their end, and their messages of errors. */
import { once } from 'node:events';
import { ZerofleetError } from '../../contracts/index.js';
import { UsageError } from './options.js';

/** Resolves with the first shutdown request: a signal, or the exit of a parent that started it with a channel. */
export async function endSignal(): Promise<string> {
  const causes = ['SIGINT', 'SIGTERM', 'SIGHUP', ...(process.connected ? ['disconnect'] : [])];
  return Promise.race(causes.map((cause) => once(process, cause).then(() => cause)));
}

/** Message of a start error. Errors that a user can fix are shown without a stack trace. */
export function explainStartError(error: unknown): string {
  const { code, message, port } = error as NodeJS.ErrnoException & { port?: number };
  if (code === 'EADDRINUSE')
    return `port ${port ?? ''} is in use: another server has it (${message}). Stop that server, or choose another port: ZEROFLEET_PORT=0 takes any free one`;
  if (code === 'EACCES' && port !== undefined)
    return `port ${port} may not be used by this user (${message}); choose another one with ZEROFLEET_PORT`;
  const known = error instanceof ZerofleetError || error instanceof UsageError;
  return known ? error.message : ((error as Error).stack ?? String(error));
}
