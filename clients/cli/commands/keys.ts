import { type Command, InvalidArgumentError } from 'commander';
import {
  type ApiKey,
  type ApiKeyRequest,
  type AuditEntry,
  type NewApiKey,
  nearestName,
  SCOPES,
  type Scope,
} from '../../../contracts/index.js';
import { collect } from '../../typescript/index.js';
import type { Context, Run } from '../context.js';
import { age, type Columns } from '../format.js';
import { NamedArgument, NamedOption } from '../names.js';
import { count, whole } from './arguments.js';

/** Commands for API keys and the audit log. */
export function addKeyCommands(program: Command, run: Run): void {
  const keys = program.command('keys').summary('list, create, rotate and revoke API keys');
  keys
    .command('list', { isDefault: true })
    .summary('list them, newest first')
    .option('--project <name>', 'keys of another project; for operators')
    .action(run(listKeys));
  keys
    .command('create')
    .summary('create a key; its secret is shown only once')
    .argument('<name>', 'a display name')
    .requiredOption('-s, --scope <scope...>', SCOPES.join(', '), addScope)
    .option('--project <name>', 'its project; for operators')
    .option('--expires <time>', 'expiry, e.g. 2027-01-31 or 2027-01-31T12:00:00Z', time)
    .option('--requests-per-minute <count>', 'requests per minute', count)
    .action(run(createKey));
  keys
    .command('rotate')
    .summary('give a key a new secret, which is shown only once')
    .addArgument(new NamedArgument('key'))
    .option('--overlap <seconds>', 'how long the previous secret stays valid; default: one day', whole)
    .action(
      run(async (context, id: string, { overlap }: { overlap?: number }) => {
        const key = await context.client.apiKeys.rotate(id, overlap);
        showSecret(context, key);
        if (key.previous_secret_until !== null)
          context.note(`the previous secret is valid until ${key.previous_secret_until}`);
      }),
    );
  keys
    .command('revoke')
    .summary('revoke a key')
    .addArgument(new NamedArgument('key'))
    .action(run((context, id: string) => context.client.apiKeys.revoke(id)));
  program
    .command('audit')
    .summary('show the audit log, newest first')
    .addOption(new NamedOption('key', '--key <key>', 'only requests with this key'))
    .option('--operation <name>', 'only this operation, e.g. cancelJob')
    .option('--resource <id>', 'only requests for this resource')
    .option('--since <time>', 'only from this time on', time)
    .option('--until <time>', 'only up to this time', time)
    .option('-n, --limit <count>', 'maximum number of entries', count, 50)
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

async function listAudit(
  context: Context,
  { key: principalId, limit, ...filter }: AuditOptions,
): Promise<void> {
  const columns: Columns<AuditEntry> = {
    AT: ({ at }) => at,
    BY: ({ principal_name }) => principal_name,
    OPERATION: ({ operation }) => operation,
    OF: ({ resource }) => resource ?? '',
    OUTCOME: ({ outcome, code }) => (code === null ? outcome : `${outcome}: ${code}`),
  };
  const entries = await collect(context.client.audit({ principal_id: principalId, ...filter }), limit);
  context.list(entries, columns, 'no entries');
}

async function listKeys(context: Context, { project }: { project?: string }): Promise<void> {
  const columns: Columns<ApiKey> = {
    KEY: ({ id }) => id,
    NAME: ({ name }) => name,
    PROJECT: (key) => key.project,
    SCOPES: ({ scopes }) => scopes.join(' '),
    EXPIRES: ({ expires_at }) => expires_at ?? 'never',
    USED: ({ last_used_at }) => (last_used_at === null ? 'never' : age(last_used_at)),
  };
  context.list(await collect(context.client.apiKeys.list({ project })), columns, 'no keys');
}

interface CreateOptions {
  scope: Scope[];
  project?: string;
  expires?: string;
  requestsPerMinute?: number;
}

async function createKey(context: Context, name: string, options: CreateOptions): Promise<void> {
  const { scope: scopes, project, expires: expiresAt, requestsPerMinute } = options;
  const request: ApiKeyRequest = {
    name,
    scopes,
    project,
    expires_at: expiresAt,
    requests_per_minute: requestsPerMinute,
  };
  showSecret(context, await context.client.apiKeys.create(request));
}

/** Prints only the secret on standard output, so that it can be piped into a secret store. */
function showSecret(context: Context, key: NewApiKey): void {
  context.show(key, () => key.secret);
  context.note(`${key.id}: store the secret now, it is not shown again`);
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
