import type { Command } from 'commander';
import type { Overrides } from '../../spec/index.js';
import { CliError, EXIT, type Run } from '../context.js';
import { NamedArgument } from '../names.js';
import { number, whole } from './arguments.js';

/** A number, or back to what the document says without overrides. */
type Value = number | 'back';

interface OverrideOptions {
  step?: number;
  lr?: Value;
  lossScale?: Value;
}

/** The command that changes the learning rate or the loss scale of a job that may be running. */
export function addOverrideCommand(program: Command, run: Run): void {
  program
    .command('override')
    .summary('change the learning rate or the loss scale of a job from a step on')
    .addArgument(new NamedArgument('job'))
    .option('--step <count>', 'steps that are done before it counts; default: those that are done now', whole)
    .option('--lr <rate>', '"schedule": that of its schedule again', orBack('schedule'))
    .option('--loss-scale <scale>', '"scaler": that of its loss scaler again', orBack('scaler'))
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

/** The list with one entry more; with what one of the same step says of the other setting. */
function withEntry(overrides: Overrides, entry: Overrides[number]): Overrides {
  const others = overrides.filter(({ step }) => step !== entry.step);
  const before = overrides.find(({ step }) => step === entry.step);
  return [...others, { ...before, ...entry }].sort((a, b) => a.step - b.step);
}

const orBack =
  (word: string) =>
  (text: string): Value =>
    text === word ? 'back' : number(text);
const given = (value: Value) => (value === 'back' ? null : value);
