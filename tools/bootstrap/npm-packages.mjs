import { existsSync, readFileSync } from 'node:fs';
import { runLogged } from './command.mjs';
import { inRoot } from './paths.mjs';

const readPackages = (file) => JSON.parse(readFileSync(file, 'utf8')).packages;

/**
 * True if `installed` has every package of `wanted` in its version; both are the `packages` of a lock file. Optional packages may
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
 * True if node_modules matches package-lock.json. npm writes the installed versions to its own lock file, so the two can be
 * compared without running npm.
 */
export function npmPackagesAreCurrent() {
  const installedFile = inRoot('node_modules', '.package-lock.json');
  if (!existsSync(installedFile)) return false;
  return hasVersions(readPackages(inRoot('package-lock.json')), readPackages(installedFile));
}

/** The npm that started this process, so that nested npm calls keep its version; else npm on PATH. */
export function npmCommand() {
  const execPath = process.env.npm_execpath;
  return execPath?.endsWith('npm-cli.js') ? [process.execPath, execPath] : ['npm'];
}

/** Installs the packages of package-lock.json, including development tools: the compiler is one of them. */
export async function installNpmPackages() {
  await runLogged('npm-ci', [...npmCommand(), 'ci', '--include=dev', '--no-audit', '--no-fund']);
}
