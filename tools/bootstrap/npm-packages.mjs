import { existsSync, readFileSync } from 'node:fs';
import { runLogged } from './command.mjs';
import { inRoot } from './paths.mjs';

const readPackages = (file) => JSON.parse(readFileSync(file, 'utf8')).packages;

/**
 * True if `installed` has every package of `wanted` in its version; both are the `packages` of a lock file. Optional
 * packages may be absent (other platforms' binaries), but not in another version. The same holds for development
 * packages without `development`.
 */
export function hasVersions(wanted, installed, { development }) {
  return Object.entries(wanted).every(([path, entry]) => {
    // Neither the project itself nor a link to one of its workspaces has a version.
    if (path === '' || entry.link || !path.startsWith('node_modules/')) return true;
    const have = installed[path];
    if (have !== undefined) return have.version === entry.version;
    const isDevelopment = entry.dev || entry.devOptional;
    return Boolean(entry.optional || (isDevelopment && !development));
  });
}

/**
 * True if node_modules matches package-lock.json. npm writes the installed versions to its own lock file, so the two
 * can be compared without running npm.
 */
export function npmPackagesAreCurrent(options) {
  const installedFile = inRoot('node_modules', '.package-lock.json');
  if (!existsSync(installedFile)) return false;
  return hasVersions(readPackages(inRoot('package-lock.json')), readPackages(installedFile), options);
}

/** The npm that started this process, so that nested npm calls keep its version; else npm on PATH. */
export function npmCommand() {
  const execPath = process.env.npm_execpath;
  return execPath?.endsWith('npm-cli.js') ? [process.execPath, execPath] : ['npm'];
}

/** Installs the packages of package-lock.json; those for tests, checks and the compiler only with `development`. */
export async function installNpmPackages({ development }) {
  const set = development ? '--include=dev' : '--omit=dev';
  await runLogged('npm-ci', [...npmCommand(), 'ci', set, '--no-audit', '--no-fund']);
}
