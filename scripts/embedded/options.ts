import { parseArgs } from 'node:util';

/** Which parts of the stack this process runs. */
export interface StackParts {
  api: boolean;
  worker: boolean;
}

/** A command line that cannot be followed; the message says what can. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/**
 * Reads the arguments of `npm start`.
 * @throws UsageError
 */
export function parseParts(args: readonly string[]): StackParts {
  const options = { 'api-only': { type: 'boolean' }, 'worker-only': { type: 'boolean' } } as const;
  const usage = 'usage: npm start [-- --api-only | --worker-only]';
  let values: { 'api-only'?: boolean; 'worker-only'?: boolean };
  try {
    values = parseArgs({ args: [...args], options }).values;
  } catch (error) {
    throw new UsageError(`${(error as Error).message}\n${usage}`);
  }
  const { 'api-only': apiOnly = false, 'worker-only': workerOnly = false } = values;
  if (apiOnly && workerOnly)
    throw new UsageError(`--api-only and --worker-only exclude each other\n${usage}`);
  return { api: !workerOnly, worker: !apiOnly };
}
