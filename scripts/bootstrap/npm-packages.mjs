import { existsSync, readFileSync } from 'node:fs';
import { runLogged } from './command.mjs';
import { inRoot } from './paths.mjs';

const readPackages = (file) => JSON.parse(readFileSync(file, 'utf8')).packages;

/**
 * True when node_modules holds exactly the versions of package-lock.json. npm writes what it installed to a lock file of
 * its own, so the two can be compared without asking npm. Optional packages may be absent (other platforms' binaries).
 */
export function npmPackagesAreCurrent() {
  const installedFile = inRoot('node_modules', '.package-lock.json');
  if (!existsSync(installedFile)) return false;
  const wanted = readPackages(inRoot('package-lock.json'));
  const installed = readPackages(installedFile);
  return Object.entries(wanted).every(([path, entry]) => {
    if (path === '') return true;
    const have = installed[path];
    return have === undefined ? Boolean(entry.optional) : have.version === entry.version;
  });
}

/** npm as it was called, so that `npm run` inside another npm keeps its version; else the one on PATH. */
export function npmCommand() {
  const execPath = process.env.npm_execpath;
  return execPath?.endsWith('npm-cli.js') ? [process.execPath, execPath] : ['npm'];
}

/** Installs what package-lock.json says, development tools included: the compiler is one of them. */
export async function installNpmPackages() {
  await runLogged('npm-ci', [...npmCommand(), 'ci', '--include=dev', '--no-audit', '--no-fund']);
}
