/** Configurations of public repositories: taken, or refused for a reason that is true. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { resolveSpec } from '../index.js';
import { document } from '../testing/deepspeed.js';

type Table = Record<string, { config: Record<string, unknown>; errors: string[] }>;
const TABLE: Table = JSON.parse(
  readFileSync(join(process.cwd(), 'contracts/testing/public-deepspeed.json'), 'utf8'),
);
const AT = '/deepspeed_config/';

function errorsOf(config: Record<string, unknown>): string[] {
  // Long enough for the warm-ups that they ask for.
  const { errors } = resolveSpec(document(config, { train: { steps: 2000 } }), null);
  return errors.map(({ pointer, code }) => `${pointer.slice(AT.length)} ${code}`);
}

for (const [name, { config, errors }] of Object.entries(TABLE))
  t.test(name, async (t) => t.strictSame(errorsOf(config), errors));

t.test('keys without effect are taken', async (t) => {
  const config = {
    train_batch_size: 2,
    comms_config: { comms_logger: { enabled: true } },
    monitor_config: { enabled: false },
    zero_optimization: { stage: 2, stage3_gather_16bit_weights_on_model_save: true, sub_group_size: 1e9 },
  };
  t.strictSame(errorsOf(config), []);
});
