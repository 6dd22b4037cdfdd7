import { SetupError } from './errors.mjs';
import { withLock } from './lock.mjs';
import { buildNative, nativeBuildIsCurrent } from './native-core.mjs';
import { checkNodeVersion, nodeVersionAdvice } from './node-version.mjs';
import { installNpmPackages, npmPackagesAreCurrent } from './npm-packages.mjs';
import { Progress } from './progress.mjs';
import { installSystemPackages, missingSystemPackages } from './system-packages.mjs';
import { compileTypescript, typescriptIsCurrent } from './typescript.mjs';
import { buildWeb, webIsCurrent } from './web.mjs';

const progress = new Progress(process.stderr);

async function systemPackagesStep() {
  const missing = missingSystemPackages();
  if (missing.length === 0) return false;
  const names = missing.map(({ apt }) => apt).join(', ');
  await progress.timed(`system packages: ${names}`, () => installSystemPackages(missing));
  return true;
}

async function unless(isCurrent, label, work) {
  if (isCurrent()) return false;
  await progress.timed(label, work);
  return true;
}

/** Builds one of the native builds unless it is current. Resolves to true if it was built. */
export function ensureNative(name, label) {
  return unless(
    () => nativeBuildIsCurrent(name),
    label,
    (onProgress) => buildNative(name, onProgress),
  );
}

/** Compiles the TypeScript unless dist/ is current. */
export function ensureTypescript() {
  return unless(typescriptIsCurrent, 'TypeScript: compiling', compileTypescript);
}

/** Builds the console unless it is current. */
export function ensureWeb() {
  return unless(webIsCurrent, 'console: bundling', buildWeb);
}

/** Installs the npm packages unless they are current. */
export function ensureNpmPackages() {
  return unless(npmPackagesAreCurrent, 'npm packages: installing', installNpmPackages);
}

/**
 * Sets up a machine that has only Node.js and npm: system packages, npm packages, native addon, compiled TypeScript, console. Current
 * parts are skipped, so a repeated call takes a fraction of a second. One process at a time sets up a checkout; others wait for
 * it.
 * @param {{advise?: boolean}} [options] advise: print the advice on an old Node.js, if there is any, on standard error
 * @returns {Promise<boolean>} true if anything was done
 * @throws {SetupError} with the remedy
 */
export async function setUp({ advise = true } = {}) {
  checkNodeVersion();
  const advice = advise && nodeVersionAdvice();
  if (advice) process.stderr.write(`${advice}\n`);
  // Commands that run at the same time do not wait for each other then.
  if (isCurrent()) return false;
  const onWait = () => process.stderr.write('  waiting for another setup of this checkout\n');
  return withLock('setup', runSteps, onWait);
}

/**
 * Waits for all tasks, even if one fails.
 * @param {Promise<T>[]} works
 * @returns {Promise<T[]>}
 * @throws their errors; a single SetupError with all messages if all are SetupErrors
 * @template T
 */
export async function allDone(works) {
  const results = await Promise.allSettled(works);
  // A task that waits for another fails with the other's error.
  const errors = new Set(results.filter(({ status }) => status === 'rejected').map(({ reason }) => reason));
  for (const error of errors) if (!(error instanceof SetupError)) throw error;
  if (errors.size > 0) throw new SetupError([...errors].map(({ message }) => message).join('\n\n'));
  return results.map(({ value }) => value);
}

function isCurrent() {
  return (
    missingSystemPackages().length === 0 &&
    npmPackagesAreCurrent() &&
    nativeBuildIsCurrent('release') &&
    typescriptIsCurrent() &&
    webIsCurrent()
  );
}

async function runSteps() {
  const systemPackages = await systemPackagesStep();
  const npmPackages = ensureNpmPackages();
  const core = nativeBuildIsCurrent('release')
    ? Promise.resolve(false)
    : ensureNative('core', 'native core: building (a few minutes the first time)');
  const addon = Promise.all([npmPackages, core]).then(() =>
    ensureNative('release', 'native addon: building'),
  );
  const programs = npmPackages.then(() => allDone([ensureTypescript(), ensureWeb()]));
  const done = (await allDone([npmPackages, core, addon, programs])).flat();
  return systemPackages || done.includes(true);
}
