import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const PACKAGE_NAME = 'zerofleet';
let cached: string | undefined;

/**
 * Returns the directory of the project's package.json. Compiled files lie at another depth than their
 * sources, so assets (`openapi.yaml`, Lua scripts, the addon) are found from here and not relative to the
 * importing file.
 */
export function projectRoot(): string {
  cached ??= findRoot(dirname(fileURLToPath(import.meta.url)));
  return cached;
}

function findRoot(from: string): string {
  for (let dir = from; ; dir = dirname(dir)) {
    const file = join(dir, 'package.json');
    if (existsSync(file) && JSON.parse(readFileSync(file, 'utf8')).name === PACKAGE_NAME) return dir;
    if (dirname(dir) === dir) throw new Error(`no package.json named "${PACKAGE_NAME}" above ${from}`);
  }
}
