/** The learning rates of steps are those that docs/job-spec.md has a table of. */
import { readFileSync } from 'node:fs';
import t from 'tap';
import { Trainer, type TrainerConfig } from './index.js';
import { tinyConfig, tinyTokens } from './testing.js';

const STEPS = 10;
const tokens = tinyTokens();
t.teardown(() => tokens.remove());

const page = readFileSync(new URL('../../../docs/job-spec.md', import.meta.url), 'utf8');
const rows = [
  ...page.matchAll(/^\| `(constant|linear|cosine|wsd)`(?:, `(log)`)? \| ((?:[\d.]+ \| ){9}[\d.]+) \|$/gm),
].map(([, type = '', warmup = 'linear', rates = '']) => ({
  type,
  warmup,
  rates: rates.split(' | ').map(Number),
}));

async function ratesOf(lrSchedule: Partial<TrainerConfig['lr_schedule']>): Promise<number[]> {
  const config = tinyConfig(tokens.path);
  const trainer = Trainer.create(
    {
      ...config,
      steps: STEPS,
      optimizer: { ...config.optimizer, lr: 1e-3 },
      lr_schedule: { ...config.lr_schedule, min_lr: 1e-4, warmup_steps: 3, decay_steps: 4, ...lrSchedule },
    },
    () => {},
  );
  await trainer.connect();
  await trainer.initialize();
  const rates: number[] = [];
  for (let step = 0; step < STEPS; step++) rates.push((await trainer.step(0)).lr);
  trainer.close();
  return rates;
}

t.equal(rows.length, 5, 'the page has its table');
for (const { type, warmup, rates } of rows) {
  t.test(`${type}, warm-up ${warmup}`, async (t) => {
    const seen = await ratesOf({ type, warmup_type: warmup } as Partial<TrainerConfig['lr_schedule']>);
    t.same(
      seen.map((lr) => Number((lr * 1000).toPrecision(4))),
      rates,
    );
  });
}
