import { withLock } from './lock.mjs';
import { buildNative, nativeBuildIsCurrent } from './native-core.mjs';
import { checkNodeVersion, nodeVersionAdvice } from './node-version.mjs';
import { installNpmPackages, npmPackagesAreCurrent } from './npm-packages.mjs';
import { installSystemPackages, missingSystemPackages } from './system-packages.mjs';
import { compileTypescript, typescriptIsCurrent } from './typescript.mjs';

const seconds = (since) => `${((performance.now() - since) / 1000).toFixed(1)} s`;

/** One calm line per piece of work, on standard error: what is being done, then how long it took. */
export async function timed(label, work) {
  const started = performance.now();
  process.stderr.write(`  ${label} … `);
  try {
    await work();
  } catch (error) {
    process.stderr.write('failed\n');
    throw error;
  }
  process.stderr.write(`${seconds(started)}\n`);
}

async function systemPackagesStep() {
  const missing = missingSystemPackages();
  if (missing.length === 0) return false;
  const names = missing.map(({ apt }) => apt).join(', ');
  await timed(`system packages: ${names}`, () => installSystemPackages(missing));
  return true;
}

async function unless(isCurrent, label, work) {
  if (isCurrent()) return false;
  await timed(label, work);
  return true;
}

/** Builds one of the native targets unless it is current. Resolves to whether there was something to do. */
export function ensureNative(name, label) {
  return unless(
    () => nativeBuildIsCurrent(name),
    label,
    () => buildNative(name),
  );
}

/** Compiles the TypeScript unless dist/ is current. */
export function ensureTypescript() {
  return unless(typescriptIsCurrent, 'TypeScript: compiling', compileTypescript);
}

/** Installs the npm packages unless they are current. */
export function ensureNpmPackages() {
  return unless(npmPackagesAreCurrent, 'npm packages: installing', installNpmPackages);
}

/**
 * Brings a machine that has only Node.js and npm to where zerofleet runs: system packages, npm packages, native addon,
 * compiled TypeScript. Each part is skipped when it is current, so calling it again costs a fraction of a second. One
 * process at a time does so in a checkout; others wait for it.
 * @param {{advise?: boolean}} [options] advise: print the advice on an old Node.js, if there is any, on standard error
 * @returns {Promise<boolean>} whether there was anything to do
 * @throws {SetupError} with what to do about it
 */
export async function setUp({ advise = true } = {}) {
  checkNodeVersion();
  const advice = advise && nodeVersionAdvice();
  if (advice) process.stderr.write(`${advice}\n`);
  const onWait = () => process.stderr.write('  waiting for another setup of this checkout\n');
  return withLock('setup', runSteps, onWait);
}

async function runSteps() {
  const done = [
    await systemPackagesStep(),
    await ensureNpmPackages(),
    await ensureNative('addon', 'native core: building (a few minutes the first time)'),
    await ensureTypescript(),
  ];
  return done.includes(true);
}
