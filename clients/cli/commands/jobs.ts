import type { Command } from 'commander';
import { stringify } from 'yaml';
import {
  isFinal,
  isSourceUri,
  JOB_STATES,
  type Job,
  type JobSpec,
  type JobState,
  plainText,
} from '../../../contracts/index.js';
import { initFromOf } from '../../../job-document/index.js';
import { detailsOf } from '../../text/event-text.js';
import { collect } from '../../typescript/index.js';
import { CliError, type Context, EXIT, type Run } from '../context.js';
import {
  age,
  type Columns,
  jobDetails,
  lossOf,
  memoryTable,
  percentOf,
  ranksOf,
  workDetails,
} from '../format.js';
import { NamedArgument } from '../names.js';
import { withSettings } from '../settings.js';
import { withIds } from '../sources.js';
import { readSpec } from '../spec-file.js';
import { watchJob } from '../watch.js';
import { choice, count, several } from './arguments.js';

/** Commands for jobs. */
export function addJobCommands(program: Command, run: Run): void {
  program
    .command('submit')
    .summary('create a job from a YAML or JSON file')
    .argument('<file>', 'the job document; - reads standard input')
    .option('-w, --watch', 'watch the job until it ends')
    .option('--dry-run', 'only validate it, and estimate its data, time and memory')
    .option('--set <path=value>', 'change the document, e.g. train.steps=400; repeatable', several)
    .option('--idempotency-key <key>', 'repeating the key returns the same job')
    .action(run(submit));
  program
    .command('list')
    .summary('list jobs, newest first')
    .addOption(choice('-s, --state <state...>', 'only jobs in one of these states', JOB_STATES))
    .option('--name <name>', 'only jobs with this name')
    .option('--pool <pool>', 'only jobs of this pool')
    .option('-l, --label <key=value...>', 'only jobs with all of these labels', several)
    .option('--since <time>', 'only jobs created after this time, e.g. 2026-03-01T00:00:00Z')
    .option('--before <time>', 'only jobs created before this time')
    .option('-n, --limit <count>', 'maximum number of jobs', count, 20)
    .action(run(list));
  program
    .command('get')
    .summary('show a job')
    .addArgument(new NamedArgument('job'))
    .option('-d, --document', 'print the document that created it, which can be submitted again')
    .action(
      run(async (context, id: string, { document = false }: { document?: boolean }) => {
        if (document) return showDocument(context, id);
        const job = await context.client.jobs.get(id);
        context.show(job, () => jobDetails(job));
      }),
    );
  program
    .command('watch')
    .summary('watch a job until it ends or pauses; Ctrl-C leaves it running')
    .addArgument(new NamedArgument('job'))
    .action(run((context, id: string) => watchToEnd(context, id)));
  program
    .command('events')
    .summary('show the events of a job')
    .addArgument(new NamedArgument('job'))
    .option('-f, --follow', 'follow new events until the job ends')
    .action(run(events));
}

async function showDocument(context: Context, id: string): Promise<void> {
  const given = await context.client.jobs.document(id);
  if (given === null) throw new CliError('the document that created this job is not stored', EXIT.failed);
  context.show(given, () => stringify(given).trimEnd());
}

interface SubmitOptions {
  watch?: boolean;
  dryRun?: boolean;
  set?: string[];
  idempotencyKey?: string;
}

async function submit(context: Context, file: string, options: SubmitOptions): Promise<void> {
  const spec = withSettings(await readSpec(file, context.environment), options.set ?? []);
  await submitSpec(context, await withIds(context, spec), options);
}

/** Creates a job, or with `dryRun` only shows what it would be. */
export async function submitSpec(
  context: Context,
  spec: JobSpec,
  options: Pick<SubmitOptions, 'watch' | 'dryRun' | 'idempotencyKey'>,
): Promise<void> {
  if (options.dryRun) {
    const [checked, { currency }] = await Promise.all([
      context.client.jobs.dryRun(spec),
      context.client.me(),
    ]);
    context.warn(checked.warnings);
    context.show(
      checked,
      () => `${workDetails(checked.work, currency)}\n\n${memoryTable(checked.estimate, context.width)}`,
    );
    return;
  }
  const { data, model } = spec;
  for (const uri of [data?.uri, data?.tokenizer, model && initFromOf(model)?.uri])
    if (isSourceUri(uri)) context.note(`${uri} is copied first, unless a copy exists`);
  const { idempotencyKey } = options;
  const job = await context.client.jobs.create(spec, { ...(idempotencyKey && { idempotencyKey }) });
  context.warn(job.warnings);
  context.show(job, () => job.id);
  context.note(`queued in pool ${job.spec.resources.pool}; watch it with: zerofleet watch ${job.id}`);
  if (options.watch) await watchToEnd(context, job.id);
}

async function watchToEnd(context: Context, id: string): Promise<void> {
  const job = await watchJob(context, id);
  context.show(job, () => jobDetails(job));
  if (job.export) context.note(`fetch the model with: zerofleet download ${id}`);
  if (isFinal(job.state) && job.state !== 'succeeded') {
    throw new CliError(`the job has ${job.state === 'failed' ? 'failed' : 'been cancelled'}`, EXIT.failed);
  }
}

interface ListOptions {
  state?: JobState[];
  name?: string;
  pool?: string;
  label?: string[];
  since?: string;
  before?: string;
  limit: number;
}

async function list(context: Context, options: ListOptions): Promise<void> {
  const { limit, since: createdAfter, before: createdBefore, ...filter } = options;
  const columns: Columns<Job> = {
    JOB: ({ id }) => id,
    NAME: ({ name }) => name,
    STATE: ({ state }) => state,
    DONE: ({ progress }) => percentOf(progress),
    LOSS: lossOf,
    RANKS: (job) => String(ranksOf(job)),
    CREATED: ({ created_at }) => age(created_at),
  };
  const jobs = context.client.jobs.list({
    ...filter,
    created_after: createdAfter,
    created_before: createdBefore,
  });
  context.list(await collect(jobs, limit), columns, 'no jobs');
}

async function events(context: Context, id: string, options: { follow?: boolean }): Promise<void> {
  const { client, signal } = context;
  const all = options.follow ? client.jobs.follow(id, { kinds: ['event'], signal }) : client.jobs.events(id);
  for await (const entry of all) {
    if (entry.kind !== 'event') continue;
    context.show(
      entry,
      () => `${entry.at}  ${[entry.type.padEnd(22), plainText(detailsOf(entry))].join('  ').trimEnd()}`,
    );
  }
}
