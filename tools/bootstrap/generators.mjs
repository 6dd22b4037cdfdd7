// Generated files of this repository. They are committed, so that readers need no tools; the lint step regenerates them
// and fails if they differ.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { fillResolved, renderDefaults } from '../contract/job-defaults.mjs';
import { pythonGenerators } from '../python-client/generate.mjs';
import { runLogged } from './command.mjs';
import { SetupError } from './errors.mjs';
import { compiledDir, inRoot } from './paths.mjs';
import { bundledText } from './programs.mjs';

const CONTRACT = 'contracts/openapi/openapi.yaml';

/**
 * Schemas of the configurations of model families, from the families' files. The files are bundled without a check of
 * their types, because these schemas are a source of the types.
 */
async function modelSchemas() {
  const { stringifyYaml } = await import('@redocly/openapi-core');
  const text = await bundledText('tools/contract/model-schemas.ts');
  const code = Buffer.from(text).toString('base64');
  const module = await import(`data:text/javascript;base64,${code}`);
  const schemas = stringifyYaml(module.modelSchemas(), { lineWidth: 140, noRefs: true });
  return `# Generated from job-document/model/families/ by \`npm run generate\`; change it there.\n${schemas}`;
}

/** The HTTP contract bundled from contracts/openapi/, with the annotations of the job document. */
async function annotatedContract() {
  const { bundle, createConfig } = await import('@redocly/openapi-core');
  const options = { ref: inRoot(CONTRACT), config: await createConfig({}) };
  const { bundle: document, problems } = await bundle(options).catch((error) => {
    throw new SetupError(`${CONTRACT}: ${error.message}`);
  });
  const [first] = problems;
  if (first) throw new SetupError(`${CONTRACT}: ${first.message} (${first.location[0]?.source.absoluteRef})`);
  return document.parsed;
}

/** The HTTP contract in one file. */
async function openapiDocument() {
  const { stringifyYaml } = await import('@redocly/openapi-core');
  const text = stringifyYaml(fillResolved(await annotatedContract()), { lineWidth: 140, noRefs: true });
  return `# Generated from contracts/openapi/ by \`npm run generate\`; change it there.\n${text}`;
}

/** TypeScript types of the HTTP contract. A property with a default is optional in a request, hence the option. */
async function openapiTypes() {
  const dir = mkdtempSync(join(tmpdir(), 'zerofleet-generate-'));
  try {
    const output = join(dir, 'openapi.ts');
    const tool = inRoot('node_modules', 'openapi-typescript', 'bin', 'cli.js');
    const options = ['--default-non-nullable=false', '--output', output];
    await runLogged('openapi-typescript', [process.execPath, tool, 'openapi.yaml', ...options]);
    return readFileSync(output, 'utf8');
  } finally {
    rmSync(dir, { recursive: true });
  }
}

/** The defaults of the job document's fields. */
const jobDefaults = async () => renderDefaults(await annotatedContract());

const MARKED = /(<!-- generated: [a-z-]+ -->\n)[\s\S]*?(<!-- end of generated -->)/;

/** Calls a function of the compiled TypeScript. */
const rendered = async (module, render) =>
  (await import(pathToFileURL(inRoot(compiledDir, module)).href))[render]();

/** A documentation page with a part generated from a table of the program. */
async function markedPart(page, module, render) {
  const table = await rendered(module, render);
  return readFileSync(inRoot(page), 'utf8').replace(MARKED, (_, begin, end) => `${begin}${table}\n${end}`);
}

const documentation = (page, module, render) => ({
  file: page,
  make: () => markedPart(page, module, render),
});

/**
 * Schemas of model families, the HTTP contract, its types and the defaults of the job document, each generated from the
 * previous one.
 */
export const contractGenerators = [
  { file: 'contracts/openapi/schemas/model-families.yaml', make: modelSchemas },
  { file: 'openapi.yaml', make: openapiDocument },
  { file: 'contracts/generated/openapi.ts', make: openapiTypes },
  { file: 'contracts/generated/job-defaults.ts', make: jobDefaults },
];

/** Each generated file and its generator. All but those of the contract need the compiled TypeScript. */
export const generators = [
  ...contractGenerators,
  ...pythonGenerators,
  {
    file: 'native/model/config/family_parts.cc',
    make: () => rendered('tools/contract/model-parts.js', 'renderModelParts'),
  },
  documentation('docs/configuration.md', 'platform/config/config.js', 'renderSettings'),
  documentation('docs/errors.md', 'tools/docs/error-table.js', 'renderErrorTables'),
  documentation('docs/deepspeed.md', 'tools/docs/deepspeed-tables.js', 'renderDeepspeedTables'),
  documentation('docs/models.md', 'tools/docs/model-tables.js', 'renderModelTables'),
  documentation('docs/job-spec.md', 'tools/docs/job-spec-tables.js', 'renderJobSpecTables'),
];

/** @returns {Promise<string[]>} generated files that differ from their generator's output */
export async function staleFiles() {
  const stale = [];
  for (const { file, make } of generators) {
    if (readFileSync(inRoot(file), 'utf8') !== (await make())) stale.push(file);
  }
  return stale;
}
