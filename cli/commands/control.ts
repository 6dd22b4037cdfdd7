import type { Command } from 'commander';
import type { Job } from '../../contracts/index.js';
import type { Context, Run } from '../context.js';
import { rankCount, ranksOf } from '../format.js';
import { NamedArgument, NamedOption } from '../names.js';
import { patchOf } from '../settings.js';
import { count, several } from './arguments.js';

interface ForkOptions {
  fromCheckpoint?: string;
  set?: string[];
}

/** The commands that change what a job does. */
export function addControlCommands(program: Command, run: Run): void {
  const command = (name: string, summary: string) =>
    program.command(name).summary(summary).addArgument(new NamedArgument('job'));
  const says = (context: Context, job: Job) =>
    context.show(job, () => `${job.id}  ${job.state}  ${rankCount(ranksOf(job))}`);

  command('pause', 'save a checkpoint and give the ranks back').action(
    run(async (context, id: string) => says(context, await context.client.jobs.pause(id))),
  );
  command('resume', 'go on with a paused job, on any number of ranks')
    .option('-r, --ranks <count>', 'so many, if it may have them', count)
    .action(
      run(async (context, id: string, { ranks }: { ranks?: number }) =>
        says(context, await context.client.jobs.resume(id, ranks === undefined ? {} : { ranks })),
      ),
    );
  command('resize', 'change the number of ranks while it runs')
    .requiredOption('-r, --ranks <count>', 'how many', count)
    .action(
      run(async (context, id: string, { ranks }: { ranks: number }) =>
        says(context, await context.client.jobs.resize(id, ranks)),
      ),
    );
  command('cancel', 'end a job for good').action(
    run(async (context, id: string) => says(context, await context.client.jobs.cancel(id))),
  );
  command('checkpoint', 'ask for a checkpoint at the next step').action(
    run(async (context, id: string) => says(context, await context.client.jobs.checkpoint(id))),
  );
  command('fork', 'a new job that goes on from a checkpoint of this one')
    .addOption(
      new NamedOption('checkpoint', '-c, --from-checkpoint <checkpoint>', 'which; without it the newest'),
    )
    .option('--set <path=value>', 'change its document, as train.steps=400; more than once', several)
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
