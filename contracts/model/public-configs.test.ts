/**
 * Configurations with the fields of public models: accepted, or refused with the errors of the table. They were written down by hand
 * and not yet compared with the published files.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { importConfig } from './index.js';

interface Table {
  accepted: Record<string, Record<string, unknown>>;
  refused: Record<string, { config: Record<string, unknown>; errors: string[] }>;
}

const { accepted, refused }: Table = JSON.parse(
  readFileSync(join(process.cwd(), 'contracts/model/testing/public-configs.json'), 'utf8'),
);
const errorsOf = (config: Record<string, unknown>) =>
  importConfig(config).errors.map(({ pointer, code }) => `${pointer} ${code}`);

t.test('accepted', async (t) => {
  for (const [name, config] of Object.entries(accepted)) t.strictSame(errorsOf(config), [], name);
  t.ok(Object.keys(accepted).length >= 40);
});

t.test('refused', async (t) => {
  for (const [name, { config, errors }] of Object.entries(refused))
    t.strictSame(errorsOf(config), errors, name);
});

t.test('names of transformers own begin with a line and mean nothing', async (t) => {
  const [config = {}] = Object.values(accepted);
  const own = {
    _attn_implementation_internal: 'sdpa',
    _flash_attn_2_enabled: true,
    _experts_implementation: 'eager',
  };
  t.strictSame(errorsOf({ ...config, ...own }), []);
});
