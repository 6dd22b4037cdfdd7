// Prints the architecture of a config.json, which it reads from standard input: what a golden file of the model has.
// Needs the compiled TypeScript (npm run build).
import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { compiledDir, inRoot } from '../../../tools/bootstrap/paths.mjs';

const jobDocument = pathToFileURL(inRoot(compiledDir, 'job-document/index.js')).href;
const { architectureOf, importConfig } = await import(jobDocument);
const { config, errors } = importConfig(JSON.parse(readFileSync(0, 'utf8')));
if (errors.length > 0) throw new Error(JSON.stringify(errors));
console.log(JSON.stringify(architectureOf(config)));
