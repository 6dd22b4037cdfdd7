import { type Command, InvalidArgumentError } from 'commander';
import {
  type ApiKey,
  type ApiKeyRequest,
  type AuditEntry,
  type NewApiKey,
  nearestName,
  SCOPES,
  type Scope,
} from '../../contracts/index.js';
import type { Context, Run } from '../context.js';
import { age, table } from '../format.js';
import { NamedArgument, NamedOption } from '../names.js';
import { count, whole } from './arguments.js';

/** The commands about API keys and what was done with them. */
export function addKeyCommands(program: Command, run: Run): void {
  const keys = program.command('keys').summary('list, make, rotate and revoke API keys');
  keys
    .command('list', { isDefault: true })
    .summary('list them, newest first')
    .option('--project <name>', 'of another project; for operators')
    .action(run(listKeys));
  keys
    .command('create')
    .summary('make a key; its secret is shown this once')
    .argument('<name>', 'a name for people')
    .requiredOption('-s, --scope <scope...>', SCOPES.join(', '), addScope)
    .option('--project <name>', 'its project; for operators')
    .option('--expires <time>', 'from when on it is refused, e.g. 2027-01-31 or 2027-01-31T12:00:00Z', time)
    .option('--requests-per-minute <count>', 'how often it may ask', count)
    .action(run(createKey));
  keys
    .command('rotate')
    .summary('give a key a new secret, which is shown this once')
    .addArgument(new NamedArgument('key'))
    .option('--overlap <seconds>', 'how long the secret before works on; a day unless said otherwise', whole)
    .action(
      run(async (context, id: string, { overlap }: { overlap?: number }) => {
        const key = await context.client.apiKeys.rotate(id, overlap);
        showSecret(context, key);
        if (key.previous_secret_until !== null)
          context.note(`the secret before works until ${key.previous_secret_until}`);
      }),
    );
  keys
    .command('revoke')
    .summary('refuse a key from now on')
    .addArgument(new NamedArgument('key'))
    .action(run((context, id: string) => context.client.apiKeys.revoke(id)));
  program
    .command('audit')
    .summary('who has changed what, newest first')
    .addOption(new NamedOption('key', '--key <key>', 'only what was done with this key'))
    .option('--operation <name>', 'only this, e.g. cancelJob')
    .option('--resource <id>', 'only what was done to this')
    .option('--since <time>', 'only from then on', time)
    .option('--until <time>', 'only up to then', time)
    .option('-n, --limit <count>', 'so many entries', count, 50)
    .action(run(listAudit));
}

interface AuditOptions {
  key?: string;
  operation?: string;
  resource?: string;
  since?: string;
  until?: string;
  limit: number;
}

async function listAudit(context: Context, { key: key_id, limit, ...filter }: AuditOptions): Promise<void> {
  const found: AuditEntry[] = [];
  for await (const entry of context.client.audit({ key_id, ...filter })) {
    found.push(entry);
    if (found.length === limit) break;
  }
  const rows = found.map((entry) => [
    entry.at,
    entry.key_name,
    entry.operation,
    entry.resource ?? '',
    entry.code === null ? entry.outcome : `${entry.outcome}: ${entry.code}`,
  ]);
  context.show(found, () => table(['AT', 'KEY', 'OPERATION', 'OF', 'OUTCOME'], rows, 'no entries'));
}

async function listKeys(context: Context, { project }: { project?: string }): Promise<void> {
  const found: ApiKey[] = [];
  for await (const key of context.client.apiKeys.list({ project })) found.push(key);
  const rows = found.map((key) => [
    key.id,
    key.name,
    key.project,
    key.scopes.join(' '),
    key.expires_at ?? 'never',
    key.last_used_at === null ? 'never' : age(key.last_used_at),
  ]);
  context.show(found, () => table(['KEY', 'NAME', 'PROJECT', 'SCOPES', 'EXPIRES', 'USED'], rows, 'no keys'));
}

interface CreateOptions {
  scope: Scope[];
  project?: string;
  expires?: string;
  requestsPerMinute?: number;
}

async function createKey(context: Context, name: string, options: CreateOptions): Promise<void> {
  const { scope: scopes, project, expires: expires_at, requestsPerMinute: requests_per_minute } = options;
  const request: ApiKeyRequest = { name, scopes, project, expires_at, requests_per_minute };
  showSecret(context, await context.client.apiKeys.create(request));
}

/** The secret alone on standard output, so that it can go straight to where secrets are kept. */
function showSecret(context: Context, key: NewApiKey): void {
  context.show(key, () => key.secret);
  context.note(`${key.id}: keep the secret now, it is not shown again`);
}

function addScope(text: string, before: Scope[] = []): Scope[] {
  const scope = SCOPES.find((known) => known === text);
  if (scope !== undefined) return [...before, scope];
  const near = nearestName(text, SCOPES);
  throw new InvalidArgumentError(`Scopes are ${SCOPES.join(', ')}.${near ? ` Did you mean ${near}?` : ''}`);
}

function time(text: string): string {
  const at = new Date(text);
  if (/^\d{4}-\d\d-\d\d/.test(text) && !Number.isNaN(at.getTime())) return at.toISOString();
  throw new InvalidArgumentError('It must be a date or a time, like 2027-01-31.');
}
