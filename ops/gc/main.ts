/** `npm run gc`: removes unreferenced objects from the object store, and prints them. */
import { parseArgs } from 'node:util';
import {
  type Collected,
  collectGarbage,
  DEFAULT_GRACE_MS,
  type FoundLeftover,
} from '../../control/garbage/collect.js';
import type { Config } from '../../platform/config/config.js';
import { createLogger } from '../../platform/logging/logging.js';
import { configFor } from '../stack/config.js';
import { UsageError } from '../stack/options.js';
import { explainStartError } from '../stack/program.js';
import { withStores } from '../stack/with-stores.js';

const HOUR_MS = 3_600_000;

interface Arguments {
  dry_run: boolean;
  grace_ms: number;
}

/** Runs it with the stack's configuration; sets the exit code. */
export async function main(args: readonly string[]): Promise<void> {
  try {
    const given = parse(args);
    process.stdout.write(summary(await collectWith(configFor(process.env, process.stderr), given), given));
  } catch (error) {
    process.stderr.write(`${explainStartError(error)}\n`);
    process.exitCode = 1;
  }
}

/** @throws UsageError that contains the usage */
export function parse(args: readonly string[]): Arguments {
  const usage = 'usage: npm run gc [-- [--dry-run] [--grace-hours HOURS]]';
  try {
    const { values } = parseArgs({
      args: [...args],
      options: { 'dry-run': { type: 'boolean', default: false }, 'grace-hours': { type: 'string' } },
    });
    const hours = values['grace-hours'];
    const graceMs = hours === undefined ? DEFAULT_GRACE_MS : Number(hours) * HOUR_MS;
    if (!(graceMs > 0)) throw new Error('HOURS must be more than 0');
    return { dry_run: values['dry-run'], grace_ms: graceMs };
  } catch (error) {
    throw new UsageError(`${(error as Error).message}\n${usage}`);
  }
}

function collectWith(config: Config, options: Arguments): Promise<Collected> {
  const log = createLogger({ level: config.log_level, name: 'gc', destination: process.stderr });
  const onFound = (found: FoundLeftover) => process.stdout.write(line(found));
  return withStores(config, log, (stores) => collectGarbage({ ...stores, ...options, onFound }));
}

function line({ kind, key, objects, bytes, changed_at }: FoundLeftover): string {
  return `${kind.padEnd(14)} ${key} (${objects} objects, ${bytes} bytes, last written ${changed_at})\n`;
}

export function summary(collected: Collected, { dry_run }: Arguments): string {
  const { skipped, leftovers, objects, bytes, uploads } = collected;
  if (skipped === 'empty')
    return 'nothing removed: Redis is empty. If it lost its records, run npm run recover first\n';
  if (skipped === 'restoring')
    return 'nothing removed: the records are being restored, or a restore was interrupted; run npm run recover\n';
  const verb = dry_run ? 'would remove' : 'removed';
  return `${verb} ${leftovers} leftovers (${objects} objects, ${bytes} bytes) and ${uploads} unfinished uploads\n`;
}
