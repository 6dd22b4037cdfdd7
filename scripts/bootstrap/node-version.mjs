import { readFileSync } from 'node:fs';
import { SetupError } from './errors.mjs';
import { inRoot } from './paths.mjs';

const toNumbers = (version) => version.split('.').map(Number);

/** Refuses a Node.js that is older than package.json's `engines` asks for. */
export function checkNodeVersion(current = process.versions.node) {
  const { engines } = JSON.parse(readFileSync(inRoot('package.json'), 'utf8'));
  const required = engines.node.replace('>=', '');
  const [major, minor = 0] = toNumbers(required);
  const [haveMajor, haveMinor] = toNumbers(current);
  if (haveMajor > major || (haveMajor === major && haveMinor >= minor)) return;
  throw new SetupError(
    `zerofleet needs Node.js ${required} or later; this is ${current}. See https://nodejs.org/`,
  );
}
