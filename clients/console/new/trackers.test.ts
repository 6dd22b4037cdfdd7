import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import t from 'tap';
import { parse } from 'yaml';
import { projectRoot } from '../../../platform/process/root.js';
import { MAX_INTEGRATIONS, TRACKERS, trackerOf, withType } from './trackers.js';

const contract = parse(readFileSync(join(projectRoot(), 'openapi.yaml'), 'utf8'));
const { schemas } = contract.components;

t.test('the contract accepts what the form writes', async (t) => {
  t.equal(MAX_INTEGRATIONS, schemas.Integrations.maxItems);
  const ajv = new Ajv2020({ strict: false, validateFormats: false }).addSchema(contract, 'contract');
  const accepts = ajv.getSchema('contract#/components/schemas/Integration');
  const sampleOf = (name: string) => (name === 'url' ? 'https://tracker.example.com' : 'main');
  for (const [type, { targets, fields }] of Object.entries(TRACKERS))
    for (const target of targets) {
      const names = [target, ...fields].map(({ name }) => name);
      const written = { type, ...Object.fromEntries(names.map((name) => [name, sampleOf(name)])) };
      t.ok(accepts?.(written), JSON.stringify([written, accepts?.errors]));
    }
});

t.test('another kind keeps what it has, too', async (t) => {
  t.strictSame(withType({ type: 'other', url: 'u', experiment: 'e', elsewhere: 'x' }, 'mlflow'), {
    type: 'mlflow',
    url: 'u',
    experiment: 'e',
  });
  t.equal(trackerOf('constructor'), undefined);
});
