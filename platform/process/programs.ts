import { join } from 'node:path';
import { projectRoot } from './root.js';

/**
 * Path of a program, or of the main module of a thread, that set-up has bundled into dist/.
 * @param name path of its source without extension, for example worker/rank/main. The file's name ends in `main.ts`,
 *   which is how
 * the bundler (tools/bootstrap/programs.mjs) finds it
 */
export const programPath = (name: string): string => join(projectRoot(), 'dist', `${name}.js`);
