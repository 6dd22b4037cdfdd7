import type { Command } from 'commander';
import type { Rollout } from '../../../contracts/index.js';
import { reinforcementOf } from '../../../job-document/index.js';
import { type Prompt, promptText } from '../../text/prompt-text.js';
import { collect, type StepAnswers } from '../../typescript/index.js';
import { CliError, type Context, EXIT, type Run } from '../context.js';
import { NamedArgument } from '../names.js';
import { count } from './arguments.js';

/** The command for the samples of a training job. */
export function addStepAnswersCommand(program: Command, run: Run): void {
  program
    .command('samples')
    .summary(
      "show how a job's checkpoints answer the prompts of its document, or the rewarded answers of a step",
    )
    .addArgument(new NamedArgument('job'))
    .option('-s, --step <step>', 'of reinforcement learning: the step; by default the newest', count)
    .action(run(samples));
}

async function samples(context: Context, id: string, { step }: { step?: number }): Promise<void> {
  const { client } = context;
  const { spec } = await client.jobs.get(id);
  if (reinforcementOf(spec.train) !== null) {
    const rollout = await client.calls.rollout(id, step);
    return context.show(rollout, () => rolloutText(rollout));
  }
  if (step !== undefined)
    throw new CliError('--step selects samples of reinforcement learning, and this job has none', EXIT.usage);
  const steps = await collect(client.jobs.samples(id));
  context.show(steps, () => textOf(spec.checkpoint.samples?.prompts ?? [], steps));
}

/** The answers under each prompt, with their rewards. */
function rolloutText({ step, groups }: Rollout): string {
  const texts = groups.map(({ prompt, samples }) =>
    [
      `prompt: ${prompt}`,
      ...samples.map(({ reward, text, errors }) =>
        [
          `reward ${Number(reward.toPrecision(4))}`,
          indented(text),
          ...errors.map(({ grader, message }) => `  ${grader} failed: ${message}`),
        ].join('\n'),
      ),
    ].join('\n'),
  );
  return [`step ${step}`, ...texts].join('\n\n');
}

/** The steps under each prompt. */
function textOf(prompts: readonly Prompt[], steps: readonly StepAnswers[]): string {
  if (prompts.length === 0) return 'the document has no prompts: set checkpoint.samples';
  if (steps.length === 0) return 'no checkpoint has answered yet';
  return prompts
    .map((prompt, at) => {
      const lines = steps.map(
        ({ step, answers, error }) => `step ${step}\n${indented(answers[at] ?? error ?? '')}`,
      );
      return [`prompt: ${promptText(prompt)}`, ...lines].join('\n');
    })
    .join('\n\n');
}

const indented = (text: string) => text.replaceAll(/^/gm, '  ');
