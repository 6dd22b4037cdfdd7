import type { Command } from 'commander';
import type { Job } from '../../../contracts/index.js';
import { ranks } from '../../text/numbers.js';
import type { Context, Run } from '../context.js';
import { ranksOf } from '../format.js';
import { NamedArgument, NamedOption } from '../names.js';
import { patchOf } from '../settings.js';
import { count, several } from './arguments.js';

interface ForkOptions {
  fromCheckpoint?: string;
  set?: string[];
}

/** Commands that control a job's execution. */
export function addControlCommands(program: Command, run: Run): void {
  const command = (name: string, summary: string) =>
    program.command(name).summary(summary).addArgument(new NamedArgument('job'));
  const says = (context: Context, job: Job) =>
    context.show(job, () => `${job.id}  ${job.state}  ${ranks(ranksOf(job))}`);

  command('pause', 'save a checkpoint and release the ranks').action(
    run(async (context, id: string) => says(context, await context.client.jobs.pause(id))),
  );
  command('resume', 'resume a paused job, on any number of ranks')
    .option('-r, --ranks <count>', 'the number of ranks', count)
    .action(
      run(async (context, id: string, { ranks }: { ranks?: number }) =>
        says(context, await context.client.jobs.resume(id, ranks === undefined ? {} : { ranks })),
      ),
    );
  command('resize', 'change the number of ranks of a running job')
    .requiredOption('-r, --ranks <count>', 'how many', count)
    .action(
      run(async (context, id: string, { ranks }: { ranks: number }) =>
        says(context, await context.client.jobs.resize(id, ranks)),
      ),
    );
  command('cancel', 'cancel a job').action(
    run(async (context, id: string) => says(context, await context.client.jobs.cancel(id))),
  );
  command('checkpoint', 'request a checkpoint at the next step').action(
    run(async (context, id: string) => says(context, await context.client.jobs.checkpoint(id))),
  );
  command('fork', 'create a new job that continues from a checkpoint of this one')
    .addOption(
      new NamedOption(
        'checkpoint',
        '-c, --from-checkpoint <checkpoint>',
        'the checkpoint; default: the newest',
      ),
    )
    .option('--set <path=value>', 'change its document, e.g. train.steps=400; repeatable', several)
    .action(
      run(async (context, id: string, { fromCheckpoint, set = [] }: ForkOptions) => {
        const request = {
          ...(fromCheckpoint !== undefined && { from_checkpoint: fromCheckpoint }),
          ...(set.length > 0 && { overrides: patchOf(set) }),
        };
        says(context, await context.client.jobs.fork(id, request));
      }),
    );
}
