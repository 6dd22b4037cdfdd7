import type { Command } from 'commander';
import type { Attempt, Job, JobPatch } from '../../../contracts/index.js';
import { CliError, EXIT, type Run } from '../context.js';
import { age, table } from '../format.js';
import { NamedArgument } from '../names.js';
import { count, number, several } from './arguments.js';

/** Numbers of ranks in a row of an attempt. */
const RANKS_SHOWN = 5;

interface UpdateOptions {
  name?: string;
  notes?: string;
  priority?: number;
  label?: string[];
  unlabel?: string[];
  minRanks?: number;
  maxRanks?: number;
  ranks?: number;
}

/** Commands that change, retry and delete jobs. */
export function addChangeCommands(program: Command, run: Run): void {
  const command = (name: string, summary: string) =>
    program.command(name).summary(summary).addArgument(new NamedArgument('job'));

  command('update', "change a job's name, notes, priority, labels or ranks")
    .option('--name <name>', 'another name')
    .option('--notes <text>', 'other notes; an empty text removes them')
    .option('-p, --priority <number>', 'jobs with higher priority are scheduled first', number)
    .option('-l, --label <key=value...>', 'set a label', several)
    .option('--unlabel <key...>', 'remove a label', several)
    .option('-r, --ranks <count>', 'the requested number of ranks', count)
    .option('--min-ranks <count>', 'the minimum number of ranks', count)
    .option('--max-ranks <count>', 'the maximum number of ranks', count)
    .action(
      run(async (context, id: string, options: UpdateOptions) => {
        const job = await context.client.jobs.update(id, patchOf(options));
        context.show(job, () => describe(job));
      }),
    );
  command('retry', 'queue a failed job again, from its newest checkpoint').action(
    run(async (context, id: string) => {
      const job = await context.client.jobs.retry(id);
      context.show(job, () => `${job.id}  ${job.state}  attempt ${job.attempt}`);
    }),
  );
  command('delete', 'delete a job that has ended')
    .option('--artifacts', 'also delete its checkpoints and exports')
    .action(
      run(async (context, id: string, options: { artifacts?: boolean }) => {
        await context.client.jobs.delete(id, options);
        context.show({ deleted: id }, () => `${id}  deleted`);
      }),
    );
  command('attempts', "list the job's attempts").action(
    run(async (context, id: string) => {
      const attempts: Attempt[] = [];
      for await (const attempt of context.client.jobs.attempts(id)) attempts.push(attempt);
      const head = ['ATTEMPT', 'EPOCH', 'RANKS', 'OUTCOME', 'REASON', 'ROOT CAUSE', 'STARTED', 'WORKERS'];
      context.show(attempts, () =>
        table(head, attempts.map(row), 'no attempt has started yet', context.width),
      );
    }),
  );
}

function patchOf({
  name,
  notes,
  priority,
  label = [],
  unlabel = [],
  ranks,
  minRanks,
  maxRanks,
}: UpdateOptions): JobPatch {
  const labels = [
    ...label.map((text): [string, string] => {
      const [, name = '', value = ''] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
      if (name === '') throw new CliError(`'${text}' is not a label: write key=value`, EXIT.usage);
      return [name, value];
    }),
    ...unlabel.map((name): [string, null] => [name, null]),
  ];
  const range = Object.entries({ min: minRanks, max: maxRanks, preferred: ranks }).filter(
    ([, value]) => value !== undefined,
  );
  const patch: JobPatch = {
    ...(name !== undefined && { name }),
    ...(notes !== undefined && { notes }),
    ...(priority !== undefined && { priority }),
    ...(labels.length > 0 && { labels: Object.fromEntries(labels) }),
    ...(range.length > 0 && { resources: { ranks: Object.fromEntries(range) } }),
  };
  if (Object.keys(patch).length === 0)
    throw new CliError('nothing to change: see zerofleet help update', EXIT.usage);
  return patch;
}

function describe({ id, name, state, spec, labels }: Job): string {
  const { min, max, preferred } = spec.resources.ranks;
  const named = Object.entries(labels).map(([name, value]) => `${name}=${value}`);
  return [
    id,
    ...(name === '' ? [] : [name]),
    state,
    `priority ${spec.priority}`,
    `ranks ${min} to ${max}, ${preferred} preferred`,
    ...named,
  ].join('  ');
}

/** The newest numbers of ranks, the oldest first. */
function ranksOver(generations: Attempt['generations']): string {
  const sizes = generations.map(({ world_size }) => String(world_size));
  const shown = sizes.length > RANKS_SHOWN ? ['…', ...sizes.slice(-RANKS_SHOWN)] : sizes;
  return shown.join(' → ') || '–';
}

function row({
  attempt,
  epoch,
  generations,
  outcome,
  reason,
  root_cause,
  started_at,
  workers,
}: Attempt): string[] {
  const cause =
    root_cause === null
      ? ''
      : `${root_cause.code}${root_cause.rank === null ? '' : ` (rank ${root_cause.rank})`}`;
  return [
    String(attempt),
    String(epoch),
    ranksOver(generations),
    outcome,
    reason ?? '',
    cause,
    age(started_at),
    workers.join(' '),
  ];
}
