import { chmodSync } from 'node:fs';
import { capture } from '../bootstrap/command.mjs';
import { listFiles } from '../bootstrap/fingerprint.mjs';
import { inRoot } from '../bootstrap/paths.mjs';

const isSource = (path) =>
  path.endsWith('/') ? !/^native\/(build.*|third_party)\/$/.test(path) : /\.(cc|h|cu|cuh)$/.test(path);

/**
 * Compares the C++ and CUDA sources with native/.clang-format.
 * @param {{fix: boolean}} options `fix`: formats them instead
 * @returns {Promise<string[]>} the complaints of clang-format
 */
export async function cppStyleProblems({ fix }) {
  const { clangFormatPath } = (await import('clang-format-node')).default;
  // npm runs the package's own script for this only where scripts are allowed.
  chmodSync(clangFormatPath, 0o755);
  const mode = fix ? ['-i'] : ['--dry-run', '--Werror', '--ferror-limit=1'];
  const files = listFiles(['native'], isSource).map((file) => inRoot(file));
  const { code, output } = await capture([clangFormatPath, '--style=file', ...mode, ...files], {});
  return code === 0 ? [] : [output.trim()];
}
