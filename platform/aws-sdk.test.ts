/** Modules that create AWS SDK clients disable the SDK's warning about the Node.js version. */
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { projectRoot } from './process/root.js';

const FOLDERS = [
  'api',
  'autoscaler',
  'clients',
  'control',
  'formats',
  'graders',
  'ops',
  'platform',
  'state',
  'tools',
  'worker',
];
const IMPORT = /^import \{([^}]*)\} from '(@aws-sdk\/client-[a-z0-9-]+)';$/gm;
const DIST = join(projectRoot(), 'compiled');

interface ClientModule {
  module: string;
  package: string;
  client: string;
}

/** Compiled modules that import a client class; type-only imports do not survive compilation. */
function clientModules(): ClientModule[] {
  const files = FOLDERS.flatMap((room) =>
    readdirSync(join(DIST, room), { recursive: true, encoding: 'utf8' }).map((file) => join(room, file)),
  );
  const modules = files.filter((file) => file.endsWith('.js') && !file.endsWith('.test.js'));
  return modules.flatMap((module) =>
    [...readFileSync(join(DIST, module), 'utf8').matchAll(IMPORT)].flatMap(([, names = '', from = '']) =>
      [...names.matchAll(/\b\w+Client\b/g)].map(([client]) => ({ module, package: from, client })),
    ),
  );
}

/**
 * Returns the standard error of a process that imports a module, creates a client and reports Node.js 20.11
 * as its version.
 */
function warningsOf(module: string | null, { package: from, client }: Omit<ClientModule, 'module'>): string {
  const script = `
    Object.defineProperty(process, 'version', { value: 'v20.11.0' });
    ${module === null ? '' : `await import(${JSON.stringify(join(DIST, module))});`}
    const sdk = await import(${JSON.stringify(from)});
    new sdk.${client}({ region: 'eu-central-1' });`;
  const { AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: _, ...env } = process.env;
  const options = { cwd: projectRoot(), env, encoding: 'utf8' } as const;
  const { status, stderr } = spawnSync(process.execPath, ['--input-type=module', '--eval', script], options);
  if (status !== 0) throw new Error(stderr);
  return stderr;
}

t.test('no process prints the AWS SDK’s Node.js warning', async (t) => {
  const found = clientModules();
  const clients = [...new Set(found.map(({ client }) => client))].sort();
  t.same(clients, ['AutoScalingClient', 'CloudWatchClient', 'S3Client', 'STSClient']);
  t.match(warningsOf(null, { package: '@aws-sdk/client-s3', client: 'S3Client' }), /require node >=\d+/);
  for (const clientModule of found)
    t.equal(
      warningsOf(clientModule.module, clientModule),
      '',
      `${clientModule.module}: ${clientModule.client}`,
    );
});
