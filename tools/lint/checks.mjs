// The static checks, each a function that resolves with its problems; an empty list means success.
import { existsSync } from 'node:fs';
import { capture } from '../bootstrap/command.mjs';
import { staleFiles } from '../bootstrap/generators.mjs';
import { inRoot, ROOMS } from '../bootstrap/paths.mjs';
import { columnProblems } from './columns.mjs';
import { cppStyleProblems } from './cpp-style.mjs';
import { exportProblems } from './exports.mjs';
import { folderProblems } from './folders.mjs';
import { lengthProblems } from './lengths.mjs';
import { linkProblems } from './links.mjs';
import { nativeLayerProblems } from './native-layers.mjs';
import { openapiProblems } from './openapi.mjs';

const bin = (name) => inRoot('node_modules', '.bin', name);
const typescriptRooms = [...ROOMS, 'bench', 'test', 'tools'];

async function tool(argv) {
  const { code, output } = await capture(argv, { env: { NO_COLOR: '1', FORCE_COLOR: '0' } });
  return code === 0 ? [] : [output.trim()];
}

const style = (fix) => tool([bin('biome'), 'check', '--error-on-warnings', ...(fix ? ['--write'] : []), '.']);

const typescriptLayers = () => {
  const rooms = typescriptRooms.filter((room) => existsSync(inRoot(room)));
  return tool([bin('depcruise'), '--config', '.dependency-cruiser.cjs', '--output-type', 'err', ...rooms]);
};

const generatedFiles = async () =>
  (await staleFiles()).map((file) => `${file} is out of date: run npm run generate`);

/** In execution order. `fix`: apply automatic fixes. */
export const checks = [
  { name: 'style (biome)', run: ({ fix }) => style(fix) },
  { name: 'style of C++ (clang-format)', run: cppStyleProblems },
  { name: 'columns', run: async () => columnProblems(['.']) },
  { name: 'lengths of files', run: async () => lengthProblems(['.']) },
  { name: 'layers of the TypeScript rooms', run: typescriptLayers },
  { name: 'folders', run: async () => folderProblems(typescriptRooms) },
  { name: 'exports', run: async () => exportProblems([...typescriptRooms, 'clients/console']) },
  { name: 'layers of native/', run: async () => nativeLayerProblems() },
  { name: 'links of pages', run: async () => linkProblems() },
  { name: 'openapi.yaml (redocly, spectral)', run: () => openapiProblems(inRoot('openapi.yaml')) },
  { name: 'generated files are fresh', run: generatedFiles },
];

/**
 * Runs all checks and prints one line per check, followed by its problems. @returns {Promise<{passed: number, failed:
 * number}>}
 */
export async function runChecks({ fix = false } = {}) {
  const totals = { passed: 0, failed: 0 };
  for (const { name, run } of checks) {
    const problems = await run({ fix });
    console.log(`  ${problems.length === 0 ? 'ok    ' : 'FAILED'} ${name}`);
    for (const problem of problems) console.log(problem);
    totals[problems.length === 0 ? 'passed' : 'failed'] += 1;
  }
  return totals;
}
