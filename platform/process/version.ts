import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { projectRoot } from './root.js';

/** Version of this program in package.json. */
export const PROGRAM_VERSION: string = JSON.parse(
  readFileSync(join(projectRoot(), 'package.json'), 'utf8'),
).version;
