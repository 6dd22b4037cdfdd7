import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { projectRoot } from './root.js';

let cached: string | undefined;

/** The version in package.json. */
export function projectVersion(): string {
  cached ??= String(JSON.parse(readFileSync(join(projectRoot(), 'package.json'), 'utf8')).version);
  return cached;
}
