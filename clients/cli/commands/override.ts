import type { Command } from 'commander';
import type { Overrides } from '../../../job-document/index.js';
import { CliError, EXIT, type Run } from '../context.js';
import { NamedArgument } from '../names.js';
import { number, several, whole } from './arguments.js';

/** A number, or 'back' for the document's value without overrides. */
type Value = number | 'back';

interface OverrideOptions {
  step?: number;
  lr?: Value;
  lossScale?: Value;
  groupLr?: string[];
}

/** The command that overrides learning rates or the loss scale of a job, even while it runs. */
export function addOverrideCommand(program: Command, run: Run): void {
  program
    .command('override')
    .summary('change learning rates or the loss scale of a job from a step on')
    .addArgument(new NamedArgument('job'))
    .option(
      '--step <count>',
      'completed steps before the override applies; default: the current number',
      whole,
    )
    .option('--lr <rate>', '"schedule": restore the schedule', numberOrBack('schedule'))
    .option('--loss-scale <scale>', '"scaler": restore the loss scaler', numberOrBack('scaler'))
    .option(
      '--group-lr <match=rate...>',
      'the rate of one of train.optimizer.param_groups, by its match; "share": restore its share of the learning rate',
      several,
    )
    .action(
      run(async (context, id: string, { step, lr, lossScale, groupLr = [] }: OverrideOptions) => {
        if (lr === undefined && lossScale === undefined && groupLr.length === 0)
          throw new CliError('nothing to change: name --lr, --group-lr or --loss-scale', EXIT.usage);
        const { jobs } = context.client;
        const { progress, spec, state_version } = await jobs.get(id);
        const entry = {
          step: step ?? progress.step,
          ...(lr !== undefined && { lr: given(lr) }),
          ...(lossScale !== undefined && { loss_scale: given(lossScale) }),
          ...(groupLr.length > 0 && { group_lr: Object.fromEntries(groupLr.map(rateOf)) }),
        };
        const overrides = withEntry(spec.train.overrides, entry);
        const job = await jobs.update(id, { train: { overrides } }, { ifMatch: `"${state_version}"` });
        context.show(job, () => `${job.id}  ${job.state}  ${JSON.stringify(job.spec.train.overrides)}`);
      }),
    );
}

/** The list with one more entry, merged with an entry of the same step for the other settings. */
function withEntry(overrides: Overrides, entry: Overrides[number]): Overrides {
  const others = overrides.filter(({ step }) => step !== entry.step);
  const before = overrides.find(({ step }) => step === entry.step);
  const groupLr = { ...before?.group_lr, ...entry.group_lr };
  const merged = { ...before, ...entry, ...(Object.keys(groupLr).length > 0 && { group_lr: groupLr }) };
  return [...others, merged].sort((a, b) => a.step - b.step);
}

/** @param text `match=rate`, or `match=share` */
function rateOf(text: string): [match: string, rate: number | null] {
  const [, match = '', rate = ''] = /^(.+)=([^=]*)$/s.exec(text) ?? [];
  const value = rate === 'share' ? null : Number(rate);
  if (match !== '' && rate.trim() !== '' && !Number.isNaN(value)) return [match, value];
  throw new CliError(`'${text}' is not the rate of a group: write match=rate, or match=share`, EXIT.usage);
}

const numberOrBack =
  (word: string) =>
  (text: string): Value =>
    text === word ? 'back' : number(text);
const given = (value: Value) => (value === 'back' ? null : value);
