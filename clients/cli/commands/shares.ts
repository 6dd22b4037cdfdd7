import { type Command, InvalidArgumentError } from 'commander';
import type { Share } from '../../../contracts/index.js';
import type { Context, Run } from '../context.js';
import { age, type Columns } from '../format.js';
import { NamedArgument } from '../names.js';

const SECONDS_OF = { s: 1, m: 60, h: 3600, d: 86_400 } as const;

/** Commands for links that show one job. */
export function addShareCommands(program: Command, run: Run): void {
  const shares = program.command('shares').summary('list, create and revoke links that show one job');
  shares
    .command('list', { isDefault: true })
    .summary('list those of a job, newest first')
    .addArgument(new NamedArgument('job'))
    .action(run(listShares));
  shares
    .command('create')
    .summary('create a link that reads the job; it is shown only once')
    .addArgument(new NamedArgument('job'))
    .option('--expires <time>', 'its life, e.g. 12h or 30d; at most 90d', life, 7 * SECONDS_OF.d)
    .option('--description <text>', 'a note, which those who open the link see')
    .action(run(createShare));
  shares
    .command('revoke')
    .summary('end a link, and all browser sessions that it began')
    .addArgument(new NamedArgument('job'))
    .argument('<share>', 'its id')
    .action(run((context, job: string, share: string) => context.client.shares.revoke(job, share)));
}

async function listShares(context: Context, job: string): Promise<void> {
  const columns: Columns<Share> = {
    SHARE: ({ id }) => id,
    EXPIRES: ({ expires_at }) => expires_at,
    CREATED: ({ created_at }) => age(created_at),
    DESCRIPTION: ({ description }) => description,
  };
  context.list(await context.client.shares.list(job), columns, 'no links');
}

async function createShare(
  context: Context,
  job: string,
  { expires, description }: { expires: number; description?: string },
): Promise<void> {
  const share = await context.client.shares.create(job, { expires_in_seconds: expires, description });
  context.show(share, () => share.url);
  context.note(`${share.id}: whoever has the link can read the job until ${share.expires_at}`);
}

function life(text: string): number {
  const [, value, unit] = /^(\d{1,9})([smhd])$/.exec(text) ?? [];
  const seconds = Number(value) * SECONDS_OF[unit as keyof typeof SECONDS_OF];
  if (seconds > 0) return seconds;
  throw new InvalidArgumentError('It must be a number and s, m, h or d, such as 7d.');
}
