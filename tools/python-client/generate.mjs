// Generated modules of clients/python, from openapi.yaml and package.json.
import { readFileSync } from 'node:fs';
import { inRoot } from '../bootstrap/paths.mjs';
import { operationsModule } from './operations.mjs';
import { schemasModule, Types } from './schemas.mjs';

/** The document and its types. The parser is loaded late: set-up imports this file before there are packages. */
const read = async () => {
  const { parse } = await import('yaml');
  const document = parse(readFileSync(inRoot('openapi.yaml'), 'utf8'));
  return { document, types: new Types(document.components.schemas) };
};

async function operations() {
  const { document, types } = await read();
  return operationsModule(types, document);
}

async function schemas() {
  const { document, types } = await read();
  // Operations name types of their own, too.
  operationsModule(types, document);
  return schemasModule(types);
}

function version() {
  const { version } = JSON.parse(readFileSync(inRoot('package.json'), 'utf8'));
  return `"""Version of zerofleet. Generated from package.json by \`npm run generate\`."""\n\n__version__ = "${version}"\n`;
}

const FOLDER = 'clients/python/zerofleet';

export const pythonGenerators = [
  { file: `${FOLDER}/schemas.py`, make: schemas },
  { file: `${FOLDER}/operations.py`, make: operations },
  { file: `${FOLDER}/version.py`, make: version },
];
