import type { Command } from 'commander';
import { type Prompt, promptText } from '../../text/prompt-text.js';
import { collect, type StepAnswers } from '../../typescript/index.js';
import type { Context, Run } from '../context.js';
import { NamedArgument } from '../names.js';

/** The command for the answers of checkpoints to the prompts of a document. */
export function addStepAnswersCommand(program: Command, run: Run): void {
  program
    .command('samples')
    .summary("show how a job's checkpoints answer the prompts of its document")
    .addArgument(new NamedArgument('job'))
    .action(run(samples));
}

async function samples(context: Context, id: string): Promise<void> {
  const { client } = context;
  const { spec } = await client.jobs.get(id);
  const steps = await collect(client.jobs.samples(id));
  context.show(steps, () => textOf(spec.checkpoint.samples?.prompts ?? [], steps));
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
