// All system packages that zerofleet needs; the README lists the same.
import { existsSync, readdirSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { capture, runLogged } from './command.mjs';
import { SetupError } from './errors.mjs';

/**
 * `apt`: name on Debian and Ubuntu. `program` (any of them on PATH) or `header` (below an include directory) detects
 * it, however it was installed.
 */
const systemPackages = [
  { apt: 'g++', program: ['g++', 'c++'], why: 'compiles the native core (C++20: GCC 12 or later)' },
  { apt: 'cmake', program: ['cmake'], why: 'configures its build' },
  { apt: 'make', program: ['make'], why: 'runs its build' },
  { apt: 'libgloo-dev', header: 'gloo/rendezvous/context.h', why: 'exchange between rank processes' },
  {
    apt: 'redis-tools',
    program: ['redis-server', 'redis-check-rdb'],
    why: 'carries the Redis server of the embedded stack',
  },
];

const programDirs = () => [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin'];

function includeDirs() {
  const base = ['/usr/local/include', '/usr/include'];
  const multiarch = existsSync('/usr/include')
    ? readdirSync('/usr/include').filter((name) => name.endsWith('-linux-gnu'))
    : [];
  return [...base, ...multiarch.map((name) => join('/usr/include', name))];
}

const isPresent = ({ program, header }) =>
  program
    ? program.some((name) => programDirs().some((dir) => existsSync(join(dir, name))))
    : includeDirs().some((dir) => existsSync(join(dir, header)));

/** Packages of the list that are missing on this machine. */
export const missingSystemPackages = () => systemPackages.filter((entry) => !isPresent(entry));

const hasProgram = (name) => programDirs().some((dir) => existsSync(join(dir, name)));

/** Command prefix that runs apt-get as root; null if this user would be asked for a password. */
async function rootPrefix() {
  if (process.getuid?.() === 0) return [];
  if (!hasProgram('sudo')) return null;
  const { code } = await capture(['sudo', '-n', 'true']);
  return code === 0 ? ['sudo', '-n'] : null;
}

function explain(missing) {
  const names = missing.map(({ apt }) => apt).join(' ');
  const list = missing.map(({ apt, why }) => `  ${apt.padEnd(16)} ${why}`).join('\n');
  return hasProgram('apt-get')
    ? `Some system packages are missing:\n${list}\n\nInstall them with this command, then run the same npm command again:\n` +
        `  sudo apt-get update && sudo apt-get install -y --no-install-recommends ${names}`
    : `Some system packages are missing (Debian's names; your system's may differ a little):\n${list}\n\n` +
        `Install them with your package manager, then run the same npm command again. On Debian 12+ or Ubuntu 24.04+:\n` +
        `  sudo apt-get install -y --no-install-recommends ${names}`;
}

/** Installs packages through apt. @throws {SetupError} with the command to run, if apt or root rights are missing */
export async function installSystemPackages(missing) {
  const prefix = hasProgram('apt-get') ? await rootPrefix() : null;
  if (prefix === null) throw new SetupError(explain(missing));
  const apt = [...prefix, 'env', 'DEBIAN_FRONTEND=noninteractive', 'apt-get'];
  await runLogged('apt-update', [...apt, 'update']);
  const names = missing.map((entry) => entry.apt);
  await runLogged('apt-install', [...apt, 'install', '-y', '--no-install-recommends', ...names]);
  const still = missingSystemPackages();
  if (still.length > 0) throw new SetupError(explain(still));
}
