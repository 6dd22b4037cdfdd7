import type { Command } from 'commander';
import type { Me } from '../../../contracts/index.js';
import { bytes, duration } from '../../text/numbers.js';
import type { Context, Run } from '../context.js';
import { table } from '../format.js';
import { whole } from './arguments.js';

/** Commands for usage and quotas of projects. */
export function addProjectCommands(program: Command, run: Run): void {
  program
    .command('usage')
    .summary("show the project's usage by day, and its current usage")
    .option('--from <day>', 'the first day, e.g. 2026-11-01; default: thirty days ago')
    .option('--to <day>', 'the last day; default: today')
    .action(run(usage));
  program.command('whoami').summary('show the project and scopes of the API key').action(run(whoami));
  const projects = program.command('projects').summary('list projects and set their quotas; for operators');
  projects.command('list', { isDefault: true }).summary('list them with their usage').action(run(list));
  projects
    .command('quota')
    .summary('set the quotas of a project; an omitted limit is unlimited')
    .argument('<project>', 'its name')
    .option('--max-jobs <count>', 'unfinished jobs', whole)
    .option('--max-ranks <count>', 'ranks requested by them', whole)
    .option('--max-storage <bytes>', 'storage of datasets, models and checkpoints', whole)
    .action(run(setQuota));
}

async function usage(context: Context, period: { from?: string; to?: string }): Promise<void> {
  const [found, { currency }] = await Promise.all([
    context.client.projects.usage(period),
    context.client.me(),
  ]);
  const row = (name: string, sums: (typeof found)['total']) => [
    name,
    String(sums.jobs),
    duration(sums.run_seconds),
    duration(sums.rank_seconds),
    sums.cost.toFixed(2),
    sums.tokens.toLocaleString('en'),
  ];
  const used = found.days.filter((day) => day.jobs + day.rank_seconds + day.tokens > 0);
  const rows = [...used.map((day) => row(day.date, day)), row('together', found.total)];
  const { storage, ranks, jobs } = found;
  const states = Object.entries(jobs).filter(([, count]) => count > 0);
  context.show(found, () =>
    [
      table(
        ['DAY', 'JOBS', 'TIME', 'RANK TIME', currency === null ? 'COST' : `COST (${currency})`, 'TOKENS'],
        rows,
        '',
        context.width,
      ),
      `now: ${states.map(([state, count]) => `${count} ${state}`).join(', ') || 'no jobs'}`,
      `     ${ranks} ranks, ${bytes(storage.total_bytes)} stored`,
    ].join('\n'),
  );
}

async function whoami(context: Context): Promise<void> {
  const me = await context.client.me();
  context.show(me, () => describe(me));
}

function describe({ api_key, share, scopes, project }: Me): string {
  const until = (time: string | null = null) => (time === null ? '' : ` until ${time}`);
  if (share !== null) return `${share.id}${until(share.expires_at)}\nreads ${share.job_id} only`;
  return `${api_key?.name} (${api_key?.id})${until(api_key?.expires_at)}\nproject ${project?.name}\n${scopes.join(' ')}`;
}

async function list(context: Context): Promise<void> {
  const found = await context.client.projects.list();
  const usage = (count: string, max: string | null) => (max === null ? count : `${count} of ${max}`);
  const rows = found.map(({ name, quota, used }) => [
    name,
    usage(String(used.jobs), quota.max_jobs === null ? null : String(quota.max_jobs)),
    usage(String(used.ranks), quota.max_ranks === null ? null : String(quota.max_ranks)),
    usage(
      bytes(used.storage_bytes),
      quota.max_storage_bytes === null ? null : bytes(quota.max_storage_bytes),
    ),
  ]);
  context.show(found, () =>
    table(['PROJECT', 'JOBS', 'RANKS', 'STORAGE'], rows, 'no projects', context.width),
  );
}

interface QuotaOptions {
  maxJobs?: number;
  maxRanks?: number;
  maxStorage?: number;
}

async function setQuota(context: Context, name: string, options: QuotaOptions): Promise<void> {
  const { maxJobs, maxRanks, maxStorage: maxStorageBytes } = options;
  const project = await context.client.projects.put(name, {
    max_jobs: maxJobs,
    max_ranks: maxRanks,
    max_storage_bytes: maxStorageBytes,
  });
  context.show(project, () => `${name}  ${JSON.stringify(project.quota)}`);
}
