/** `npm run recover`: restores records lost with Redis from the object store, and prints a summary. */
import { fileURLToPath } from 'node:url';
import { JOB_STATES } from '../../contracts/index.js';
import { type Recovered, recover } from '../../control/recovery/recover.js';
import type { Config } from '../../platform/config/config.js';
import { createLogger } from '../../platform/logging/logging.js';
import { configFor } from '../stack/config.js';
import { UsageError } from '../stack/options.js';
import { explainStartError } from '../stack/program.js';
import { withStores } from '../stack/with-stores.js';

/** Runs it with the stack's configuration; sets the exit code. */
export async function main(args: readonly string[]): Promise<void> {
  try {
    if (args.length > 0)
      throw new UsageError(`usage: npm run recover (no arguments; ${args.join(' ')} is unknown)`);
    process.stdout.write(summary(await recoverWith(configFor(process.env, process.stderr))));
  } catch (error) {
    process.stderr.write(`${explainStartError(error)}\n`);
    process.exitCode = 1;
  }
}

function recoverWith(config: Config): Promise<Recovered> {
  const log = createLogger({ level: config.log_level, name: 'recover', destination: process.stderr });
  const onUnusable = (key: string, error: Error) => log.warn({ key, err: error }, 'left out');
  return withStores(config, log, (stores) => recover({ ...stores, onUnusable }));
}

function summary(found: Recovered): string {
  const { datasets, models, sweeps, jobs, checkpoints, untouched, unaccepted, unusable } = found;
  const states = JOB_STATES.flatMap((state) => (jobs[state] ? [`${jobs[state]} ${state}`] : []));
  const lines = [
    `recovered ${datasets} datasets, ${models} models, ${checkpoints} checkpoints, ${sweeps} sweeps`,
    `jobs: ${states.join(', ') || 'none'}`,
  ];
  if (untouched > 0) lines.push(`${untouched} jobs exist and are unchanged`);
  if (unaccepted > 0) lines.push(`${unaccepted} job documents skipped that were never acknowledged`);
  if (unusable > 0) lines.push(`${unusable} documents skipped that cannot be read; the log lists them`);
  return `${lines.join('\n')}\n`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main(process.argv.slice(2));
