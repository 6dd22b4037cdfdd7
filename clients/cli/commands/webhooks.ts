import type { Command } from 'commander';
import type { Delivery, Webhook, WebhookSpec } from '../../../contracts/index.js';
import { collect } from '../../typescript/index.js';
import type { Context, Run } from '../context.js';
import { age, type Columns } from '../format.js';
import { NamedArgument } from '../names.js';
import { count } from './arguments.js';

/** Commands for webhooks. */
export function addWebhookCommands(program: Command, run: Run): void {
  const webhooks = program.command('webhooks').summary('list, create and manage webhooks');
  webhooks.command('list', { isDefault: true }).summary('list them, newest first').action(run(listWebhooks));
  webhooks
    .command('add')
    .summary('send events of jobs to a URL; prints the id and the secret, which is shown only once')
    .argument('<url>', 'https://…')
    .option('--events <types...>', 'only these events, e.g. job.state or checkpoint.*')
    .option('--named', 'only events of jobs that list the webhook in notify.webhooks')
    .option('--description <text>', 'a description for display')
    .action(run(addWebhook));
  webhooks
    .command('rotate')
    .summary('create and print a new secret')
    .addArgument(new NamedArgument('webhook'))
    .option('--overlap <seconds>', 'how long the previous secret also signs; default: one day', count)
    .action(run(rotate));
  webhooks
    .command('ping')
    .summary('send a test message; its deliveries show the result')
    .addArgument(new NamedArgument('webhook'))
    .action(run(ping));
  webhooks
    .command('deliveries')
    .summary('list its deliveries, newest first')
    .addArgument(new NamedArgument('webhook'))
    .action(run(listDeliveries));
  webhooks
    .command('redeliver')
    .summary('send a message again')
    .addArgument(new NamedArgument('webhook'))
    .argument('<delivery>', 'id of the message')
    .action(run(redeliver));
  webhooks
    .command('enable')
    .summary('enable a disabled webhook')
    .addArgument(new NamedArgument('webhook'))
    .action(run((context, id: string) => context.client.webhooks.update(id, { enabled: true })));
  webhooks
    .command('delete')
    .summary('delete a webhook')
    .addArgument(new NamedArgument('webhook'))
    .action(run((context, id: string) => context.client.webhooks.delete(id)));
}

async function listWebhooks(context: Context): Promise<void> {
  const columns: Columns<Webhook> = {
    WEBHOOK: ({ id }) => id,
    URL: ({ url }) => url,
    EVENTS: ({ events }) => events.join(' '),
    JOBS: ({ jobs }) => jobs,
    STATE: stateOf,
    CREATED: ({ created_at }) => age(created_at),
  };
  context.list(await collect(context.client.webhooks.list()), columns, 'no webhooks');
}

async function addWebhook(
  context: Context,
  url: string,
  options: { events?: string[]; named?: true; description?: string },
): Promise<void> {
  const { events, named, description } = options;
  const spec: WebhookSpec = {
    url,
    ...(events && { events }),
    ...(named && { jobs: 'named' }),
    ...(description !== undefined && { description }),
  };
  const webhook = await context.client.webhooks.create(spec);
  context.show(webhook, () => `${webhook.id}\n${webhook.secret}`);
}

async function rotate(context: Context, id: string, options: { overlap?: number }): Promise<void> {
  const webhook = await context.client.webhooks.rotateSecret(id, options.overlap);
  context.show(webhook, () => webhook.secret);
}

async function listDeliveries(context: Context, id: string): Promise<void> {
  const columns: Columns<Delivery> = {
    DELIVERY: (delivery) => delivery.id,
    EVENT: ({ message }) => message.type,
    JOB: ({ message: { data } }) => ('job_id' in data ? `${data.job_id} ${data.seq}` : ''),
    STATE: ({ state }) => state,
    TRIES: ({ attempts }) => String(attempts.length),
    LAST: ({ attempts }) => String(attempts.at(-1)?.status ?? attempts.at(-1)?.error ?? ''),
  };
  context.list(await collect(context.client.webhooks.deliveries(id)), columns, 'no deliveries');
}

async function ping(context: Context, id: string): Promise<void> {
  const delivery = await context.client.webhooks.ping(id);
  context.show(delivery, () => delivery.id);
}

async function redeliver(context: Context, webhook: string, id: string): Promise<void> {
  const delivery = await context.client.webhooks.redeliver(webhook, id);
  context.show(delivery, () => delivery.state);
}

function stateOf({ enabled, disabled_reason, failing_since }: Webhook): string {
  if (!enabled) return disabled_reason === null ? 'disabled' : `disabled: ${disabled_reason}`;
  return failing_since === null ? 'enabled' : `failing, began ${age(failing_since)}`;
}
