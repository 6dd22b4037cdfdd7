import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Command } from 'commander';
import type { SignedInUser } from '../../../contracts/index.js';
import type { Context, Environment, Run } from '../context.js';
import { age, type Columns } from '../format.js';

/** Commands for the console in a browser. */
export function addConsoleCommands(program: Command, run: Run): void {
  program
    .command('open')
    .summary('open the console in the browser, signed in with the API key')
    .option('--print', 'print its address instead, which signs one browser in, once and within two minutes')
    .action(run(open));
  program
    .command('sign-out')
    .summary('end all browser sessions of the API key, or of somebody else')
    .argument('[id]', 'key_…, usr_… or shr_…: another key, a user or a share; for admins')
    .action(run(signOut));
  program
    .command('users')
    .summary('list the users whom the OpenID provider has signed in')
    .option('--project <name>', 'users of another project; for operators')
    .action(run(listUsers));
}

async function open(context: Context, { print = false }: { print?: boolean }): Promise<void> {
  const address = await context.client.sessions.address();
  if (!print && !context.json && (await openBrowser(address.url, context.environment.env))) {
    context.note('the console opens in the browser; zerofleet open --print prints its address instead');
    return;
  }
  context.show(address, () => address.url);
  context.note('the address signs one browser in, once and within two minutes');
}

async function signOut(context: Context, id?: string): Promise<void> {
  const { sessions } = context.client;
  await (id === undefined ? sessions.endAll() : sessions.endOf(id));
  context.note(`all browser sessions of ${id ?? 'the key'} have ended`);
}

async function listUsers(context: Context, { project }: { project?: string }): Promise<void> {
  const columns: Columns<SignedInUser> = {
    USER: ({ user }) => user.id,
    NAME: ({ user }) => user.name,
    'E-MAIL': ({ user }) => user.email ?? '',
    SCOPES: ({ scopes }) => scopes.join(' '),
    'SIGNED IN': ({ user }) => age(user.signed_in_at),
    SESSIONS: ({ num_sessions }) => String(num_sessions),
  };
  context.list(await context.client.sessions.users(project), columns, 'no users');
}

/** Returns false where no browser can be opened. */
async function openBrowser(url: string, env: Environment['env']): Promise<boolean> {
  const command = openerOf(process.platform, env);
  if (command === null) return false;
  const [program, ...args] = command;
  // The browser outlives this command.
  const child = spawn(program, [...args, url], { env, stdio: 'ignore', detached: true });
  child.unref();
  try {
    await once(child, 'spawn');
    return true;
  } catch {
    return false;
  }
}

function openerOf(platform: NodeJS.Platform, env: Environment['env']): [string, ...string[]] | null {
  if (platform === 'darwin') return ['open'];
  // The empty argument is the title of the window.
  if (platform === 'win32') return ['cmd', '/c', 'start', ''];
  // Without a display xdg-open would start a browser in the terminal.
  return env.DISPLAY || env.WAYLAND_DISPLAY ? ['xdg-open'] : null;
}
