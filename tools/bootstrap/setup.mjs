import { SetupError } from './errors.mjs';
import { withLock } from './lock.mjs';
import { buildNative, nativeBuildIsCurrent } from './native-core.mjs';
import { checkNodeVersion, nodeVersionAdvice } from './node-version.mjs';
import { installNpmPackages, npmPackagesAreCurrent } from './npm-packages.mjs';
import { bundlePrograms, programsAreCurrent } from './programs.mjs';
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

/** Bundles the programs unless dist/ is current. */
export function ensurePrograms() {
  return unless(programsAreCurrent, 'programs: bundling', bundlePrograms);
}

/**
 * Checks and compiles all TypeScript for tests and benchmarks unless that is current. Needs the development packages.
 */
export function ensureTypescript() {
  return unless(typescriptIsCurrent, 'TypeScript: compiling', compileTypescript);
}

/** Builds the console unless it is current. */
export function ensureWeb() {
  return unless(webIsCurrent, 'console: bundling', buildWeb);
}

/**
 * Installs the npm packages unless they are current.
 * @param {SetUpOptions} options
 */
export function ensureNpmPackages(options) {
  const [isCurrent, work] = [npmPackagesAreCurrent, installNpmPackages].map((f) => () => f(options));
  return unless(isCurrent, 'npm packages: installing', work);
}

/**
 * Sets up a machine that has only Node.js and npm: system packages, npm packages, native addon, bundled programs,
 * console. Current parts are skipped, so a repeated call takes a fraction of a second. One process at a time sets up a
 * checkout; others wait for it.
 * @typedef {{development?: boolean}} SetUpOptions development: also what tests, checks and benchmarks need, which is
 *   their npm packages
 * and the compiled TypeScript
 * @param {SetUpOptions} [options]
 * @returns {Promise<boolean>} true if anything was done
 * @throws {SetupError} with the remedy
 */
export async function setUp({ development = false } = {}) {
  checkNodeVersion();
  // Commands that run at the same time do not wait for each other then.
  if (isCurrent({ development })) return false;
  const advice = nodeVersionAdvice();
  if (advice) process.stderr.write(`${advice}\n`);
  const onWait = () => process.stderr.write('  waiting for another setup of this checkout\n');
  return withLock('setup', () => runSteps({ development }), onWait);
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

function isCurrent(options) {
  return (
    missingSystemPackages().length === 0 &&
    npmPackagesAreCurrent(options) &&
    nativeBuildIsCurrent('release') &&
    programsAreCurrent() &&
    webIsCurrent() &&
    (!options.development || typescriptIsCurrent())
  );
}

async function runSteps(options) {
  const systemPackages = await systemPackagesStep();
  const npmPackages = ensureNpmPackages(options);
  const core = nativeBuildIsCurrent('release')
    ? Promise.resolve(false)
    : ensureNative('core', 'native core: building (a few minutes the first time)');
  const addon = Promise.all([npmPackages, core]).then(() =>
    ensureNative('release', 'native addon: building'),
  );
  const bundles = npmPackages.then(() => allDone([ensurePrograms(), ensureWeb()]));
  const compiled = npmPackages.then(() => options.development && ensureTypescript());
  const done = (await allDone([npmPackages, core, addon, bundles, compiled])).flat();
  return systemPackages || done.includes(true);
}
