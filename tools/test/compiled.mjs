// Paths of sources and of what tsc compiles them to.

import { compiledDir } from '../bootstrap/paths.mjs';

/** @param {string} source path from the root @returns {string} the file that runs; .mjs modules run as they are */
export const compiledOf = (source) =>
  source.endsWith('.ts') ? `${compiledDir}/${source.replace(/\.ts$/, '.js')}` : source;

/** The inverse of `compiledOf`. */
export const sourceOf = (file) =>
  file.startsWith(`${compiledDir}/`) ? file.slice(compiledDir.length + 1).replace(/\.js$/, '.ts') : file;
