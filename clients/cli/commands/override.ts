import type { Command } from 'commander';
import type { Overrides } from '../../../job-document/index.js';
import { CliError, EXIT, type Run } from '../context.js';
import { NamedArgument } from '../names.js';
import { number, whole } from './arguments.js';

/** A number, or 'back' for the document's value without overrides. */
type Value = number | 'back';

interface OverrideOptions {
  step?: number;
  lr?: Value;
  lossScale?: Value;
}

/** The command that overrides the learning rate or the loss scale of a job, even while it runs. */
export function addOverrideCommand(program: Command, run: Run): void {
  program
    .command('override')
    .summary('change the learning rate or the loss scale of a job from a step on')
    .addArgument(new NamedArgument('job'))
    .option(
      '--step <count>',
      'completed steps before the override applies; default: the current number',
      whole,
    )
    .option('--lr <rate>', '"schedule": restore the schedule', numberOrBack('schedule'))
    .option('--loss-scale <scale>', '"scaler": restore the loss scaler', numberOrBack('scaler'))
    .action(
      run(async (context, id: string, { step, lr, lossScale }: OverrideOptions) => {
        if (lr === undefined && lossScale === undefined)
          throw new CliError('nothing to change: name --lr or --loss-scale', EXIT.usage);
        const { jobs } = context.client;
        const { progress, spec, state_version } = await jobs.get(id);
        const entry = {
          step: step ?? progress.step,
          ...(lr !== undefined && { lr: given(lr) }),
          ...(lossScale !== undefined && { loss_scale: given(lossScale) }),
        };
        const overrides = withEntry(spec.train.overrides, entry);
        const job = await jobs.update(id, { train: { overrides } }, { ifMatch: `"${state_version}"` });
        context.show(job, () => `${job.id}  ${job.state}  ${JSON.stringify(job.spec.train.overrides)}`);
      }),
    );
}

/** The list with one more entry, merged with an entry of the same step for the other setting. */
function withEntry(overrides: Overrides, entry: Overrides[number]): Overrides {
  const others = overrides.filter(({ step }) => step !== entry.step);
  const before = overrides.find(({ step }) => step === entry.step);
  return [...others, { ...before, ...entry }].sort((a, b) => a.step - b.step);
}

const numberOrBack =
  (word: string) =>
  (text: string): Value =>
    text === word ? 'back' : number(text);
const given = (value: Value) => (value === 'back' ? null : value);
