import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { mkdir, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { Command } from 'commander';
import type { MetricsFile, MetricsFileQuery } from '../../typescript/index.js';
import { CliError, type Context, EXIT, type Run } from '../context.js';
import { pathIn } from '../download-file.js';
import { NamedArgument } from '../names.js';
import { choice, count, several } from './arguments.js';

const FORMATS: readonly MetricsFileQuery['format'][] = ['csv', 'jsonl', 'tensorboard'];

interface MetricsOptions {
  format?: MetricsFileQuery['format'];
  output?: string;
  fromStep?: number;
  toStep?: number;
  maxPoints?: number;
  names?: string[];
}

/** The command for metrics of steps and evaluations. */
export function addMetricsCommand(program: Command, run: Run): void {
  program
    .command('metrics')
    .summary('print the metrics of a job, or write them to a file')
    .addArgument(new NamedArgument('job'))
    .addOption(choice('--format <format>', 'csv by default; with --json jsonl', FORMATS))
    .option('-o, --output <file>', 'the file, or a folder for a file with the name that the API gives it')
    .option('--from-step <step>', 'only from this step on', count)
    .option('--to-step <step>', 'only up to this step', count)
    .option('--max-points <count>', 'at most this number of measured points, with the extremes', count)
    .option('--names <name>', 'metric whose extremes --max-points keeps, e.g. eval_loss; repeatable', several)
    .action(run(metrics));
}

async function metrics(context: Context, id: string, options: MetricsOptions): Promise<void> {
  const { client, signal, json } = context;
  const { format = json ? 'jsonl' : 'csv', output, fromStep, toStep, maxPoints, names } = options;
  if (format === 'tensorboard' && output === undefined)
    throw new CliError(
      '--format tensorboard needs --output: the folder of a run, or a file with tfevents in its name',
      EXIT.usage,
    );
  const query = { format, from_step: fromStep, to_step: toStep, max_points: maxPoints, names };
  const file = await client.jobs.metricsFile(id, query, { signal });
  if (output === undefined) await print(context, file);
  else await save(context, file, output);
}

/** The terminal gets lines without its commands, any other receiver the file as it is. */
async function print(context: Context, { content }: MetricsFile): Promise<void> {
  const { stdout } = context.environment;
  const decoder = new TextDecoder();
  for await (const piece of content) {
    if (stdout.isTTY) context.write(decoder.decode(piece, { stream: true }).replaceAll('\r', ''));
    else if (!stdout.write(piece)) await once(stdout, 'drain');
  }
}

/** The file gets its name when it is complete; it replaces an older one. */
async function save(context: Context, { name, content }: MetricsFile, output: string): Promise<void> {
  const isFolder = output.endsWith('/') || (await stat(output).catch(() => null))?.isDirectory() === true;
  const path = isFolder ? pathIn(output, name) : output;
  await mkdir(dirname(path), { recursive: true });
  const part = `${path}.part`;
  try {
    await pipeline(content, createWriteStream(part), { signal: context.signal });
    await rename(part, path);
  } finally {
    await rm(part, { force: true });
  }
  context.show({ file: path }, () => path);
}
