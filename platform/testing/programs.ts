import { execFile } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const INSTALL_TIMEOUT_MS = 480_000;

/**
 * APT refuses a second process instead of waiting, and test files that run at the same time need packages at the same
 * time.
 */
const LOCK = join(tmpdir(), 'zerofleet-apt.lock');
const INSTALL = 'apt-get update -qq && apt-get install -y -qq --no-install-recommends "$@"';

/** Returns the names from `programs` that are not on the PATH. */
function missingPrograms(programs: readonly string[]): string[] {
  const dirs = (process.env.PATH ?? '').split(delimiter);
  return programs.filter((program) => !dirs.some((dir) => isExecutable(join(dir, program))));
}

/**
 * Makes sure that programs exist, installing Debian packages where that is possible without a prompt (as
 * root).
 * @returns null when they exist, else the reason in one sentence
 */
export function ensurePrograms(
  programs: readonly string[],
  packages: readonly string[],
): Promise<string | null> {
  return ensureInstalled(() => missingPrograms(programs), packages);
}

/** The same for anything that Debian packages have. @param missing names of what is not there */
export async function ensureInstalled(
  missing: () => string[],
  packages: readonly string[],
): Promise<string | null> {
  const names = missing();
  if (names.length === 0) return null;
  const wanted = `needs ${names.join(', ')} (apt-get install ${packages.join(' ')})`;
  if (process.getuid?.() !== 0 || missingPrograms(['apt-get']).length > 0) return wanted;
  const options = { timeout: INSTALL_TIMEOUT_MS, env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' } };
  try {
    await run('flock', [LOCK, 'sh', '-c', INSTALL, 'apt', ...packages], options);
  } catch (error) {
    return `${wanted}; installing failed: ${String(error).split('\n')[0]}`;
  }
  return missing().length === 0 ? null : wanted;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
