import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Command } from 'commander';
import type { Context, Environment, Run } from '../context.js';

/** Commands for the console in a browser. */
export function addConsoleCommands(program: Command, run: Run): void {
  program
    .command('open')
    .summary('open the console in the browser, signed in with the API key')
    .option('--print', 'print its address instead, which signs one browser in, once and within two minutes')
    .action(run(open));
  program.command('sign-out').summary('end all browser sessions of the API key').action(run(signOut));
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

async function signOut(context: Context): Promise<void> {
  await context.client.sessions.endAll();
  context.note('all browser sessions of the key have ended');
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
