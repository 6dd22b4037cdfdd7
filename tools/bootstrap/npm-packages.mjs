import { existsSync, readFileSync } from 'node:fs';
import { runLogged } from './command.mjs';
import { inRoot } from './paths.mjs';

const readPackages = (file) => JSON.parse(readFileSync(file, 'utf8')).packages;

/**
 * Whether `installed` has every package of `wanted` in its version; both are the `packages` of a lock file. Optional packages may
 * be absent (other platforms' binaries), but not in another version.
 */
export function hasVersions(wanted, installed) {
  return Object.entries(wanted).every(([path, entry]) => {
    if (path === '') return true;
    const have = installed[path];
    return have === undefined ? Boolean(entry.optional) : have.version === entry.version;
  });
}

/**
 * True when node_modules holds what package-lock.json says. npm writes what it installed to a lock file of its own, so the two
 * can be compared without asking npm.
 */
export function npmPackagesAreCurrent() {
  const installedFile = inRoot('node_modules', '.package-lock.json');
  if (!existsSync(installedFile)) return false;
  return hasVersions(readPackages(inRoot('package-lock.json')), readPackages(installedFile));
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
