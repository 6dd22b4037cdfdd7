import { parseArgs } from 'node:util';

/** Parts of the stack that this process runs. */
export interface StackParts {
  api: boolean;
  worker: boolean;
  /** An autoscaler that starts workers for jobs and stops idle ones. */
  autoscaler: boolean;
}

/** An invalid command line; the message contains the usage. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/**
 * Reads the arguments of `npm start`.
 * @throws UsageError
 */
export function parseParts(args: readonly string[]): StackParts {
  const options = {
    'api-only': { type: 'boolean' },
    'worker-only': { type: 'boolean' },
    autoscale: { type: 'boolean' },
  } as const;
  const usage =
    'usage: zerofleet up, or npm start --, with one of --api-only, --worker-only, --autoscale, or nothing';
  let values: { 'api-only'?: boolean; 'worker-only'?: boolean; autoscale?: boolean };
  try {
    values = parseArgs({ args: [...args], options }).values;
  } catch (error) {
    throw new UsageError(`${(error as Error).message}\n${usage}`);
  }
  const given = Object.keys(values).map((name) => `--${name}`);
  if (given.length > 1) throw new UsageError(`${given.join(' and ')} exclude each other\n${usage}`);
  const { 'api-only': apiOnly = false, 'worker-only': workerOnly = false, autoscale = false } = values;
  return { api: !workerOnly, worker: !apiOnly && !autoscale, autoscaler: autoscale };
}
