// Paths of the project. The bootstrap runs before `npm ci`, so these files use only Node's own modules.
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The project's root directory (absolute). */
export const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');

/** An absolute path inside the project. */
export const inRoot = (...parts) => join(root, ...parts);

/** Folders with the TypeScript of products. */
export const ROOMS = [
  'api',
  'autoscaler',
  'clients/cli',
  'clients/text',
  'clients/typescript',
  'contracts',
  'control',
  'formats',
  'graders',
  'job-document',
  'native/js',
  'ops',
  'platform',
  'scheduler',
  'state',
  'worker',
];
/** All TypeScript compiled with its tests; mirrors the tree. Programs run from dist/, see programs.mjs. */
export const compiledDir = 'compiled';

/** Full output of the set-up commands; its last lines are shown when one fails. */
export const logDir = inRoot('.build', 'logs');
