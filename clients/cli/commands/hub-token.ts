import type { Command } from 'commander';
import { CliError, type Context, EXIT, type Run } from '../context.js';
import { age } from '../format.js';

/** The command for the project's token of the Hugging Face Hub. */
export function addHubTokenCommand(program: Command, run: Run): void {
  const token = program
    .command('hub-token')
    .summary("show, set or delete the project's token of the Hugging Face Hub");
  token.command('show', { isDefault: true }).summary('show whether there is one').action(run(show));
  token.command('set').summary('set it to the value of HF_TOKEN').action(run(set));
  token
    .command('delete')
    .summary('delete it')
    .action(run((context) => context.client.projects.setHubToken(null)));
}

async function show(context: Context): Promise<void> {
  const found = await context.client.projects.hubToken();
  context.show(found, () => (found.set_at === null ? 'no token' : `set, ${age(found.set_at)} ago`));
}

async function set(context: Context): Promise<void> {
  const { HF_TOKEN } = context.environment.env;
  if (!HF_TOKEN) throw new CliError('set HF_TOKEN to the token', EXIT.usage);
  const found = await context.client.projects.setHubToken(HF_TOKEN);
  context.show(found, () => 'set');
}
