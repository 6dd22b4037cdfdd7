import { writeFile } from 'node:fs/promises';
import type { Command } from 'commander';
import { isFinal, JOB_STATES, type Job, type Pool } from '../../../contracts/index.js';
import { collect } from '../../typescript/index.js';
import { CliError, type Context, type Environment, EXIT, type Run } from '../context.js';
import { FIRST_DOCUMENT } from '../first-document.js';
import { age, type Columns, lossOf, percentOf, tableOf } from '../format.js';

/** Jobs that the status shows. */
const SHOWN = 10;

/** Commands for a first look around. */
export function addStartCommands(program: Command, run: Run, environment: Environment): void {
  program
    .command('init')
    .summary('write a commented job document to begin with')
    .argument('[file]', 'a new file', 'job.yaml')
    .action((file: string) => init(file, environment));
  program.command('status').summary('show server, pools and unfinished jobs').action(run(status));
}

async function init(file: string, { stdout, stderr }: Environment): Promise<void> {
  try {
    await writeFile(file, FIRST_DOCUMENT, { flag: 'wx' });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const why = code === 'EEXIST' ? `${file} exists already` : `${file} can't be written: ${code}`;
    throw new CliError(why, EXIT.usage);
  }
  stdout.write(`${file}\n`);
  stderr.write(`edit it, then: zerofleet submit ${file} --dry-run, zerofleet submit ${file} --watch\n`);
}

const JOBS: Columns<Job> = {
  NAME: ({ name, id }) => name || id,
  STATE: ({ state }) => state,
  DONE: ({ progress }) => percentOf(progress),
  LOSS: lossOf,
  CREATED: ({ created_at }) => age(created_at),
};

const POOLS: Columns<Pool> = {
  POOL: ({ name }) => name,
  SLOTS: ({ slots, used_slots }) => `${slots - used_slots} of ${slots} free`,
  RUNNING: ({ running }) => String(running),
  WAITING: ({ waiting }) => String(waiting),
};

async function status(context: Context): Promise<void> {
  const { client } = context;
  const unfinished = JOB_STATES.filter((state) => !isFinal(state));
  const [me, pools, jobs] = await Promise.all([
    client.me(),
    client.pools(),
    collect(client.jobs.list({ state: unfinished, limit: SHOWN }), SHOWN),
  ]);
  const server = { url: client.options.baseUrl, project: me.project?.name ?? null, scopes: me.scopes };
  context.show({ server, pools, jobs }, () =>
    [
      `${server.url}, project ${server.project ?? '–'}`,
      '',
      tableOf(pools, POOLS, 'no pools', context.width),
      '',
      tableOf(jobs, JOBS, 'no unfinished jobs', context.width),
    ].join('\n'),
  );
}
