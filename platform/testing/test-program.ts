import { join } from 'node:path';
import { projectRoot } from '../process/root.js';

/**
 * Path of a program of the tests, bundled like those of the product.
 * @param name path of its source without extension, for example worker/testing/fake-rank-main
 */
export const testProgram = (name: string): string =>
  join(projectRoot(), 'compiled', 'programs', `${name}.js`);
