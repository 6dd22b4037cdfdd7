// Compiles single TypeScript files like tsc, without type checks: mutants may have wrong types. Then bundles the
// programs with them.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { bundlePrograms, bundleTestPrograms } from '../bootstrap/programs.mjs';

const { config } = ts.readConfigFile('tsconfig.json', ts.sys.readFile);
const { options } = ts.convertCompilerOptionsFromJson(config.compilerOptions, '.');

for (const file of process.argv.slice(2)) {
  const { outputText } = ts.transpileModule(readFileSync(file, 'utf8'), {
    fileName: file,
    compilerOptions: { ...options, module: ts.ModuleKind.ESNext, sourceMap: false },
  });
  writeFileSync(join('compiled', file.replace(/\.ts$/, '.js')), outputText);
}
await bundlePrograms();
await bundleTestPrograms();
