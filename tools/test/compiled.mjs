// Paths of sources and of what tsc compiles them to.

/** Relative to the root; mirrors the tree. */
export const compiledFolder = 'dist';

/** @param {string} source path from the root @returns {string} the file that runs; .mjs modules run as they are */
export const compiledOf = (source) =>
  source.endsWith('.ts') ? `${compiledFolder}/${source.replace(/\.ts$/, '.js')}` : source;

/** The inverse of `compiledOf`. */
export const sourceOf = (file) =>
  file.startsWith(`${compiledFolder}/`)
    ? file.slice(compiledFolder.length + 1).replace(/\.js$/, '.ts')
    : file;
