import type { Command } from 'commander';
import type { Job } from '../../contracts/index.js';
import type { Context } from '../context.js';
import { ranksOf } from '../format.js';
import type { Run } from '../program.js';
import { count } from './arguments.js';

/** The commands that change what a job does. */
export function addControlCommands(program: Command, run: Run): void {
  const command = (name: string, summary: string) =>
    program.command(name).summary(summary).argument('<job>', 'its id');
  const says = (context: Context, job: Job) =>
    context.show(job, () => `${job.id}  ${job.state}  ${ranksOf(job)} ranks`);

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
    .option('-c, --from-checkpoint <id>', 'which; without it the newest')
    .action(
      run(async (context, id: string, { fromCheckpoint }: { fromCheckpoint?: string }) => {
        const body = fromCheckpoint === undefined ? {} : { from_checkpoint: fromCheckpoint };
        says(context, await context.client.jobs.fork(id, body));
      }),
    );
}
