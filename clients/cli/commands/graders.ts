import type { Command } from 'commander';
import type { Grade } from '../../../contracts/index.js';
import { CliError, type Context, EXIT, type Run } from '../context.js';
import { GRADER_FILE, readGrader } from '../grader-file.js';
import { mappingIn } from '../spec-file.js';

/** Commands for graders of reinforcement learning. */
export function addGraderCommands(program: Command, run: Run): void {
  const graders = program.command('graders').summary('try and check graders of reinforcement learning');
  graders
    .command('run')
    .summary('grade an answer')
    .argument('<grader>', GRADER_FILE)
    .argument('<answer>', 'the answer of a model')
    .option('--item <fields>', 'fields of the line of data, as YAML or JSON')
    .addHelpText('after', EXAMPLES)
    .action(run(grade));
  graders
    .command('validate')
    .summary('check a grader, without grading')
    .argument('<grader>', GRADER_FILE)
    .action(run(validate));
}

const EXAMPLES = `
Example:
  zerofleet graders run grade.py 42 --item '{"answer": "42"}'
`;

async function grade(
  context: Context,
  file: string,
  answer: string,
  { item = '{}' }: { item?: string },
): Promise<void> {
  const fields = mappingIn(item, '--item', 'fields: write them as {"answer": "42"}');
  const grade = await context.client.grade(await readGrader(file), answer, { ...fields });
  context.show(grade, () => textOf(grade));
  if (grade.errors.length > 0) throw new CliError('the grader failed', EXIT.failed);
}

function textOf({ reward, scores, errors }: Grade): string {
  return [
    `reward ${reward}`,
    ...Object.entries(scores).map(([name, score]) => `  ${name} ${score}`),
    ...errors.map(({ grader, code, message }) => `${grader}: ${code}: ${message}`),
  ].join('\n');
}

async function validate(context: Context, file: string): Promise<void> {
  const grader = await readGrader(file);
  await context.client.checkGrader(grader);
  context.show({ grader }, () => `the grader ${grader.name} has no problem`);
}
