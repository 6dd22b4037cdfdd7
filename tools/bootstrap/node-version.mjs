import { readFileSync } from 'node:fs';
import { SetupError } from './errors.mjs';
import { inRoot } from './paths.mjs';

/**
 * Major versions of Node.js that are recommended, tested and used in images. A test compares the documentation and the
 * images with them.
 */
export const recommendedMajors = [22, 24];

const toNumbers = (version) => version.split('.').map(Number);

/** Oldest supported Node.js: package.json's `engines`. */
export function oldestVersion() {
  const { engines } = JSON.parse(readFileSync(inRoot('package.json'), 'utf8'));
  return engines.node.replace('>=', '');
}

const recommendation = () => `zerofleet recommends Node.js ${recommendedMajors.join(' or ')}`;

/** @throws {SetupError} when this Node.js is older than the oldest supported one */
export function checkNodeVersion(current = process.versions.node) {
  const oldest = oldestVersion();
  const [major, minor = 0] = toNumbers(oldest);
  const [haveMajor, haveMinor] = toNumbers(current);
  if (haveMajor > major || (haveMajor === major && haveMinor >= minor)) return;
  throw new SetupError(
    `zerofleet needs Node.js ${oldest} or later; this is ${current}. ${recommendation()}. See https://nodejs.org/`,
  );
}

/** One line of advice if this Node.js is older than every recommended one; otherwise null. */
export function nodeVersionAdvice(current = process.versions.node) {
  const [major] = toNumbers(current);
  if (major >= Math.min(...recommendedMajors)) return null;
  return `Node.js ${current} is past its end of life; ${recommendation()} (https://nodejs.org/)`;
}
